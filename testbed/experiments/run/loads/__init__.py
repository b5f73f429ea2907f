"""Loads: one record of how each kind runs, what a runner gets, and the runners."""
