"""Who sends to whom."""

from testbed.traffic.patterns import PATTERNS, PatternError, flows

__all__ = ["PATTERNS", "PatternError", "flows"]
