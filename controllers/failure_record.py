"""What the segment manager tells of a failure, and what it remembers over a restart."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from testbed.failover.damage import Damage, cut_off, words
from testbed.failover.diversion import Diversion
from testbed.model import Bools, Rule, Topology

_MOST_TOLD = 200


@dataclass(frozen=True, slots=True)
class Memory:
    """The state of a segment manager.

    Attributes:
        plan: digest of its plan.
        down: (switch, port) of ports that are down.
        dead: switches that are.
        vlans: identifiers of the VLANs there are then.
        backups: of the backup VLANs.
    """

    plan: str
    down: list[tuple[int, int]]
    dead: list[int]
    vlans: list[int]
    backups: list[int]

    def write(self, file: Path) -> None:
        """Store it, whole or not at all."""
        partial = Path(f"{file}.partial")
        partial.write_text(json.dumps(asdict(self)))
        partial.replace(file)

    @classmethod
    def read(cls, file: Path, plan: str) -> Memory | None:
        """What was stored of this plan; None where nothing was."""
        if not file.exists():
            return None
        known = json.loads(file.read_text())
        found = cls(**{**known, "down": [(int(switch), int(port)) for switch, port in known["down"]]})
        return found if found.plan == plan else None


def failure_record(topology: Topology, before: Damage, damage: Damage, diversion: Diversion) -> dict[str, Any]:
    """What an event was and what it leaves; `recovered` and `settled` are for later."""
    names, known = words(topology, damage), words(topology, before)
    return {
        "down": [name for name in names if name not in known],
        "up": [name for name in known if name not in names],
        "pairs_hit": int(diversion.hit.sum()),
        "without_backup": _pairs(topology, diversion.waiting),
        "cut_off": _pairs(topology, cut_off(topology, damage) & ~cut_off(topology, before)),
        "recovered": None,
        "settled": None,
    }


def _pairs(topology: Topology, pairs: Bools) -> list[str]:
    rows = list(zip(*np.nonzero(pairs), strict=True))
    told = [f"{topology.host_name(int(source))}→{topology.host_name(int(end))}" for source, end in rows[:_MOST_TOLD]]
    return [*told, f"and {len(rows) - _MOST_TOLD} more"] if len(rows) > _MOST_TOLD else told


def by_switch(rules: Iterable[Rule]) -> dict[int, list[Rule]]:
    """The rules of each switch."""
    found: dict[int, list[Rule]] = {}
    for rule in rules:
        found.setdefault(rule.switch, []).append(rule)
    return found


def is_down(port: Any) -> bool:
    """Whether a port, as the framework describes it, has no carrier or is shut."""
    link_down, port_down = 1, 1  # OFPPS_LINK_DOWN, OFPPC_PORT_DOWN
    return bool(port.state & link_down or port.config & port_down)
