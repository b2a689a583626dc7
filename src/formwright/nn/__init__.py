"""From card to torch: layers that read top to bottom, whole models, and the ways weights flow between designs."""
