"""How exact the compiled scalar functions are: measured over every float32, written to the docs."""
