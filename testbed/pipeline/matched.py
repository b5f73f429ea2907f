"""The rules that one frame meets on its way."""

from __future__ import annotations

from collections.abc import Iterable

from testbed.model import Bundles, Group, Rule, Topology
from testbed.pipeline.oracle import Oracle
from testbed.pipeline.tables import INGRESS


def matched_rules(
    topology: Topology,
    rules: Iterable[Rule],
    source: int,
    destination: int,
    bundles: Bundles | None = None,
    groups: Iterable[Group] = (),
) -> list[list[Rule]]:
    """Let host `source` send one frame to host `destination` and note what it matches.

    Of a bundle it takes the first member.

    Args:
        topology: the wiring between ports.
        rules: those of all switches on the way; others do no harm.
        source: host number.
        destination: host number.
        bundles: the physical links behind those of the topology, where links are aggregated.
        groups: those of all switches on the way.

    Returns:
        for each switch the frame comes to, one after the other, the rule of each table that it matched.
    """
    witness = _Witness(topology, rules, bundles, groups)
    witness.unicast(source, destination)
    visits: list[list[Rule]] = []
    for rule in witness.matched:
        if rule.table == INGRESS.number:
            visits.append([])
        visits[-1].append(rule)
    return visits


class _Witness(Oracle):
    """An oracle that notes the rules it finds."""

    every_member = False

    def __init__(
        self, topology: Topology, rules: Iterable[Rule], bundles: Bundles | None, groups: Iterable[Group]
    ) -> None:
        super().__init__(topology, rules, bundles, groups)
        self.matched: list[Rule] = []

    def _lookup(self, switch: int, table: int, frame: dict[str, object]) -> Rule | None:
        rule = super()._lookup(switch, table, frame)
        if rule is not None:
            self.matched.append(rule)
        return rule
