"""A lab whose switches are a model, seen from outside: its memory is read, where Open vSwitch would be asked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property

from testbed.emulate.build import build_with
from testbed.emulate.checks import by_datagrams, changed_links
from testbed.emulate.client import LabClient, Progress, quiet
from testbed.emulate.launch import Namespaces
from testbed.emulate.names import MODEL
from testbed.emulate.realtime.capture import ModelFrames
from testbed.emulate.realtime.memory import attach, write
from testbed.emulate.realtime.walk import walked_problems
from testbed.errors import LabError
from testbed.kernels.packets_state import PacketModel
from testbed.messages import Deviation, Flow, Tap
from testbed.model import LearningPlan
from testbed.plan import Plan

_ROUNDS = 3


def build_model_lab(plan: Plan, model: PacketModel, *, keep: bool = False, progress: Progress = quiet) -> ModelClient:
    """Build the lab of a proved plan on the model of its switches; see build_with()."""
    return build_with(plan, lambda lab: ModelClient(lab, model), keep=keep, progress=progress, model=True)


class ModelClient(LabClient):
    """As LabClient.

    Args:
        namespaces: of the lab's process 1.
        model: to be computed in it; None = it is there.
    """

    def __init__(self, namespaces: Namespaces, model: PacketModel | None = None) -> None:
        super().__init__(namespaces)
        self._file = namespaces.socket.parent / MODEL
        if model is not None:
            write(self._file, model)

    @cached_property
    def model(self) -> PacketModel:
        """The model as it is computed now; what is in it changes all the time."""
        return attach(self._file, PacketModel)

    def capture(self, tap: Tap) -> ModelFrames:
        """Listen at a link of the model; see Session."""
        fabric, topology = self.model.fabric, self.plan().wiring
        if tap.host is not None:
            name = topology.host_name(tap.host)
            links = fabric.channels + tap.host, fabric.channels + fabric.hosts + tap.host
            about = f"outbound frames are those that {name} sends"
        elif tap.link is not None:
            name = topology.channel_name(2 * tap.link).replace("→", "-")
            links, about = (2 * tap.link, 2 * tap.link + 1), f"outbound frames go {topology.channel_name(2 * tap.link)}"
        else:
            raise LabError("a tap is at a link or at a host")
        return ModelFrames(self.model, links, name, about, self.facts.dilation, self.namespaces.alive)

    def verify(self, plan: Plan) -> list[str]:
        """Teach, walk the tables of the running model, and ping all pairs; see Session."""
        if isinstance(plan.vlans, LearningPlan):
            for _ in range(_ROUNDS):
                self.learn(plan.vlans.vlan_ids.tolist(), datagrams=by_datagrams(plan))
                if not self.walk(plan):
                    break
        return self.walk(plan) or [
            f"{source}→{destination} does not answer a ping" for source, destination in self.reach()
        ]

    def walk(self, plan: Plan, off: Collection[int] | None = None) -> list[str]:
        """Walk the tables of the running model; see Session."""
        problems = walked_problems(plan, self.model)
        if off is None:
            return problems
        down = self.model.live.down
        carrying = [link for link in off if not (down[2 * link] and down[2 * link + 1])]
        return problems + [f"link {link} is off and carries frames" for link in carrying]

    def deviations(self, plan: Plan) -> list[Deviation]:
        """What is no longer as it was built; see Session."""
        found = [Deviation(True, f"rates changed: {problem}") for problem in self.shaping_problems()]
        if not isinstance(plan.vlans, LearningPlan):
            found += [Deviation(True, problem) for problem in self.walk(plan)[:1]]
        return found + changed_links(plan, self.link_states(), controlled=False)

    def taken_channels(self, plan: Plan, flows: Sequence[Flow]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Links are not aggregated here; see Session."""
        del plan, flows
        raise LabError("the links of this lab are not aggregated")
