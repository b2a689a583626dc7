"""The changes of the layout, oldest first."""
