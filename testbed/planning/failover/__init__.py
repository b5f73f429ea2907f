"""What failures leave of a fabric: backup paths made in advance, and tables for what is alive.

Mejia et al. 2007, section 2.3, give every pair a second path beforehand and compute new tables after a failure. Here a
host's paths move by its PVID, so a second path is a second VLAN: a few spanning trees, one of which does without any
link or switch that may die.
"""
