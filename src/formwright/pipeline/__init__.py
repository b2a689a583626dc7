"""Runs of stages: what is made, in which order, in which folder, in how much time, and what is delivered."""
