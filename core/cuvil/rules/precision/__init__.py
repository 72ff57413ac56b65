"""Rules that compute in fewer bits than the model says, where a person asked for that."""
