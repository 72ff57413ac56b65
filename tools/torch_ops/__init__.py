"""Every operator of torch's own database through the backend of torch.compile."""
