"""Models in the Hugging Face ecosystem: their configuration and classes, and checkpoints in both directions.

`config` and `models` alone import transformers, which takes seconds; the Auto classes learn of them when transformers
itself is imported. `load` and `save` read and write the files directly.
"""
