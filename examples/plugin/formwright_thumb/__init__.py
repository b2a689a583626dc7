"""A plug-in of Formwright: each module has one part, and `pyproject.toml` names them."""
