"""Real hosts whose network cards are doors into the packet-level model, which computes at the pace of the clock."""
