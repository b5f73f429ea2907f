"""As switch_tagged, for switches that learn addresses: what they have learned is theirs, as long as it is right."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from testbed.base.model import LearningPlan
from testbed.fabric.openflow.compile import entry_rules
from testbed.planning import Plan

from .openflow_messages import Content, content
from .reconciler import Reconciler
from .switch_tagged import SwitchTagged
from .switches import Switches
from .unsupported import RefusedError


class LearningReconciler(Reconciler):
    """Installs rules that learn, and takes back only entries that lead elsewhere than the learning procedure would.

    A switch that comes back with entries of another plan has these removed; those that are right stay, with their age.
    """

    learning = True

    def __init__(self, plan: Plan, switches: Switches, rate: float) -> None:
        super().__init__(plan, switches, rate)
        assert isinstance(plan.vlans, LearningPlan)
        self._learnable: list[set[Content]] = [set() for _ in switches.names]
        for rule in entry_rules(plan.topology, plan.vlans):
            self._learnable[rule.switch].add(content(rule))

    def learnable(self, number: int) -> Collection[Content]:
        """The entries that a switch has when each host has sent a broadcast in every VLAN."""
        return self._learnable[number]

    def move_to(self, plan: Plan, off: Collection[int], wake_up: float = 0.0, pause: float = 0.0) -> dict[str, Any]:
        """Refuse: hosts would have to take the learning procedure in the new VLANs before their paths change.

        Raises:
            RefusedError: always.
        """
        raise RefusedError(
            "switches that learn have no entries for the VLANs of another plan and would flood all frames; use "
            "assignment.registration: static for paths that change"
        )


class Learning(SwitchTagged):
    """The framework's application: it turns events into calls of a LearningReconciler."""

    def make_reconciler(self, plan: Plan, rate: float) -> Reconciler:
        """A reconciler that leaves right entries alone."""
        return LearningReconciler(plan, self.switches, rate)
