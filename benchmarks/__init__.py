"""Figures this project claims, measured on the machine at hand. Run with `make bench`."""
