"""State of the segment manager that survives a restart."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from testbed.base.files import read_text, write_whole
from testbed.base.limits import parse_json
from testbed.base.model import Topology
from testbed.planning.failover.failed_elements import FailedElements
from testbed.planning.failover.failure_log import LoggedFailure
from testbed.planning.failover.tables import Routings, Tables, recovered_tables


@dataclass(frozen=True, slots=True)
class SavedState:
    """The state of a segment manager."""

    plan: str  # digest of its plan
    down: list[tuple[int, int]]  # (switch, port) of ports that are down
    dead: list[int]  # switches that are
    vlans: list[int]  # identifiers of the VLANs there are then
    backups: list[int]  # of the backup VLANs
    # (switch, port) of links that did not hear what they should
    silent: list[tuple[int, int]] = field(default_factory=list)
    events: list[LoggedFailure] = field(default_factory=list)  # the last ones of the log

    def write(self, file: Path) -> None:
        """Store it, whole or not at all."""
        write_whole(file, json.dumps(asdict(self)).encode())

    @classmethod
    def read(cls, file: Path, plan: str) -> SavedState | None:
        """What was stored of this plan; None where nothing was."""
        if not file.exists():
            return None
        known = parse_json(read_text(file))
        ends = {key: [(int(switch), int(port)) for switch, port in known.get(key, ())] for key in ("down", "silent")}
        found = cls(**{**known, **ends})
        return found if found.plan == plan else None

    def tables(self, topology: Topology, whole: Tables, failed: FailedElements, ways: Routings) -> Tables:
        """The tables of then; those of the whole fabric where they would have another number of VLANs."""
        found = recovered_tables(topology, whole, whole, failed, ways) if failed.links.any() else whole
        if (len(self.vlans), len(self.backups)) != (found.vlans.vlan_count, found.backups.vlan_count):
            return whole
        # Tables follow from what is dead but for their identifiers, which follow from what there was before.
        return replace(
            found,
            vlans=replace(found.vlans, vlan_ids=np.array(self.vlans, dtype=np.int32)),
            backups=replace(found.backups, vlan_ids=np.array(self.backups, dtype=np.int32)),
        )
