"""Rules that compute in types that kernels are for."""
