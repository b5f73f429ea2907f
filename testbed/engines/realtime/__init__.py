"""Real hosts whose network cards are doors into the packet-level model, which computes at the pace of the clock."""

# A step of building a lab.
COMPILING = "compiling the modelled switches, once on this machine, about a minute of processor time"
