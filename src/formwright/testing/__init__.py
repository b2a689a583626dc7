"""Contract kits that a plug-in author's tests inherit, with small spaces and a toy problem to run them on."""
