"""From a card and a budget to an observation."""
