"""Evaluators: a card and a budget in, an observation out."""
