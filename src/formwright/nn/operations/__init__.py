"""The modules that run operations, one file for each of `formwright.arch.operations`."""
