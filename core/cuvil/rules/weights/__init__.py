"""Rules about weights, when all products are what they will be."""
