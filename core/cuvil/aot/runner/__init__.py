"""Runs what was compiled for other machines: a C program of our own, under an emulator or there."""
