"""How a lab is started, asked and ended."""
