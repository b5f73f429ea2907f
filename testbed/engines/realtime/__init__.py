"""Real hosts whose network cards are doors into the packet-level model, which computes at the pace of the clock."""

COMPILING = "compiling the modelled switches, once on this machine; it takes about a minute"  # a step of building a lab
