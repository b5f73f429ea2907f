"""The switches of a scenario that is simulated and not built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le

ENGINES = ("lab", "simulate")


@dataclass(frozen=True, slots=True)
class Simulator:
    """The packet level of the simulator; see docs/simulator.md.

    Attributes:
        flow_control: `none` drops frames as the lab does, `pause` stops a whole link (802.3x), `pfc` one priority of
            it (802.1Qbb).
        buffer: bytes of memory for each port and priority; none = as much as links.queue_frames take without flow
            control, else 65536.
        xoff: bytes at which a sender is paused; none = as late as loses no frame.
        xon: bytes at which it may go on; none = half of xoff.
        shared: whether the ports of a switch share their memory.
        delay: µs of cable and switch a hop.
        duration: ms of each repeat, the warm-up included.
        warm_up: ms at the beginning that do not count.
    """

    flow_control: Literal["none", "pause", "pfc"] = "none"
    buffer: Annotated[int, Ge(1), Le(1 << 30)] | None = None
    xoff: Annotated[int, Ge(1)] | None = None
    xon: Annotated[int, Ge(0)] | None = None
    shared: bool = False
    delay: Annotated[float, Ge(0), Le(1000)] = 1.0
    duration: Annotated[float, Gt(0), Le(60000)] = 200.0
    warm_up: Annotated[float, Ge(0), Le(60000)] = 50.0
