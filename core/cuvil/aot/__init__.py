"""Ahead of time: a folder with library, header, weights, manifest and build files for C."""
