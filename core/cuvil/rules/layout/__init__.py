"""Images with channels last; transposes sink towards the outputs and cancel."""
