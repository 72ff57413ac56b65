"""What examples of rules have in common."""

# Attributes of a convolution of images whose edges are not padded.
CONV = {"strides": (1, 1), "dilations": (1, 1), "pads": (0,) * 4, "layout": "channels_last"}
