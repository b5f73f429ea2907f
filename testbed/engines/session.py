"""A running fabric, whatever carries its frames: what loads, checks and regulation need of it, and no more.

Switches, hosts, links and channels have the numbers of the plan's wiring. `LabClient` in `lab/control/client.py` is
one, on Open vSwitch; what only Open vSwitch can do, such as dumping its rules as text, is no part of this.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from testbed.base.messages import (
    ControllerStatus,
    Deviation,
    Disturbance,
    Disturbed,
    Facts,
    Flow,
    Frame,
    FrameCounts,
    LinkReadings,
    LinkState,
    LoadRequest,
    Observation,
    PairReadings,
    PathTrace,
    PlanMove,
    Status,
    Tap,
)
from testbed.planning import Plan


class Frames(Protocol):
    """Frames that pass a link, from when it was opened to the end of the block; see Session.capture.

    Attributes:
        interface: name of the port or card at which they are seen.
        description: what that is, and which way outbound frames go.
    """

    interface: str
    description: str

    def read(self, seconds: float) -> list[Frame]:
        """What came since the last call, in its order; waits up to `seconds` for the first.

        Raises:
            LabError: the fabric has ended; what came before was returned by the calls before.
        """

    def stop(self) -> None:
        """Let no more in; read() then gives what came until now, and nothing where that was all."""

    def count_lost(self) -> int:
        """Frames so far that passed and were not kept, since they were not read fast enough."""


class Session(Protocol):
    """A fabric that runs a plan; every method raises LabError where it broke."""

    @property
    def facts(self) -> Facts:
        """What was built, at the dilation it has now."""

    def plan(self) -> Plan:
        """What it was built from."""

    def status(self) -> Status:
        """What it is and does; answered at any time."""

    def second_connection(self) -> AbstractContextManager[Session]:
        """The same fabric, for questions and disturbances while this one waits for a load."""

    def verify(self, plan: Plan) -> list[str]:
        """Dump the forwarding state, walk it and ping all pairs; a sentence for all that is not the plan's.

        Switches that learn addresses have learned them then.
        """

    def walk(self, plan: Plan, off: Collection[int] | None = None) -> list[str]:
        """The walk of verify() alone.

        Args:
            plan: what should be carried out.
            off: links that must carry nothing; None = that is not looked at.
        """

    def deviations(self, plan: Plan) -> list[Deviation]:
        """What is no longer as it was built: rates, queues, forwarding state, controller."""

    def taken_channels(self, plan: Plan, flows: Sequence[Flow]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """The physical channels that each flow takes where links are aggregated, and its acknowledgements if it is TCP.

        Raises:
            WorkloadError: a flow would go elsewhere than by one member of each bundle on its path.
        """

    def set_rates(self, plan: Plan) -> None:
        """Give links, and hosts their shares of the processors, what the plan's dilation says."""

    def set_speeds(self, speeds: Mapping[int, float]) -> None:
        """Let links run at shares of their rate, by the link's number; others keep theirs."""

    def run_load(self, load: LoadRequest) -> Observation:
        """Run the processes of a load in the hosts; count, record and disturb meanwhile."""

    def disturb(self, disturbance: Disturbance) -> Disturbed:
        """Let something die or come back, or links change, now.

        Raises:
            LabError: this fabric cannot do that; nothing has changed then.
        """

    def link_states(self) -> dict[int, LinkState]:
        """Links between switches that are not as planned, by number; answered at any time."""

    def frames(self) -> FrameCounts:
        """Everything that counts frames."""

    def read_links(self) -> LinkReadings:
        """What all links have carried until now; answered at any time, and cheap."""

    def read_pairs(self) -> PairReadings:
        """Bytes between hosts; likewise."""

    def trace_path(self, plan: Plan, source: int, destination: int) -> PathTrace:
        """Where a frame of a host for another goes now; likewise answered at any time.

        `plan`: for its wiring.
        """

    def capture(self, tap: Tap) -> AbstractContextManager[Frames]:
        """Listen at a link, also while a load runs, until the block ends."""

    def controller(self) -> ControllerStatus:
        """Status of what installs the forwarding state; LabError where nothing does."""

    def move_to(
        self, plan: str, off: Sequence[int], *, limit: float = ..., wake_up: float = ..., pause: float = ...
    ) -> PlanMove:
        """Carry the switches over to another plan while frames flow.

        Args:
            plan: its JSON text.
            off: links that are off afterwards.
            limit: s that it may take.
            wake_up: s from a link's being switched on until it carries frames.
            pause: s after each step, to look at the states in between.
        """

    def write(self, name: str, text: str, mode: int = ...) -> Path:
        """Write a file into the lab's folder; returns its path there. Programs in hosts see those in SHARED."""

    def copy(self, source: Path) -> str:
        """Copy a file of this machine into SHARED; its path has neither spaces nor colons."""

    def share_folder(self, folder: Path, hosts: Sequence[str] | None = None) -> None:
        """Let programs in hosts, in all or some, read a folder of this machine that would be hidden from them.

        With `lab.host_access: read` that is what is below /tmp, with `none` most of the machine.
        """

    def read(self, name: str) -> bytes:
        """Content of a file that was written there."""

    def pop_file(self, name: str) -> str:
        """Text of a file that a load has left there, which is then gone; empty where there is none."""

    def count_files(self, pattern: str) -> int:
        """How many files of a name with wildcards are there."""
