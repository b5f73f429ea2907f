"""What tests ask of the failures that a run has stored."""

from __future__ import annotations

from typing import Literal

from testbed.results.samples import Failure


def seconds(
    event: Failure,
    *moments: Literal["detection", "diverted", "takeover", "manager_takeover", "recovery", "settled"],
) -> list[float]:
    """When these happened, s after the event; each did."""
    found = [at for moment in moments if (at := event[moment]) is not None]
    assert len(found) == len(moments), event
    return found
