"""Everything a run does, from a proved plan to its result folder."""
