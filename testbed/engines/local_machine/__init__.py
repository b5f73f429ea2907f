"""This machine: what it has, what it can do, other processes and machines for computing."""
