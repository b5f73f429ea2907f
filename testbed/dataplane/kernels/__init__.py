"""Compiled loops over arrays: packets, flits and TCP."""
