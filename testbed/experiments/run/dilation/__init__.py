"""How much slower than the real world a lab must be."""
