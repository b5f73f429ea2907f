"""What the lab is asked to start, and what is wrong with what that printed."""

from __future__ import annotations

from testbed.messages import Process

__all__ = ["OutputError", "Process"]


class OutputError(ValueError):
    """What a program printed is not what it prints when it worked; the text says what is wrong."""
