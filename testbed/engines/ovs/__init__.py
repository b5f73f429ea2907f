"""Open vSwitch: its daemons, rules and ports, and the fast path beside it."""
