"""Python functions to the `py` dialect: reading their source, and finding every type."""
