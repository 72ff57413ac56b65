"""The rewrite engine: rules as data, one driver, patterns, and the user's own fusions."""
