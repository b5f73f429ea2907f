"""Files of an export, read back and compared with a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testbed.errors import InputError, Problem
from testbed.export.compare import Difference, planned_bridges, setting_differences, walk_differences
from testbed.export.export import DIALECTS, SCHEMA_VERSION, dialect_called, host_macs
from testbed.export.names import port_names
from testbed.export.read_running import read_running
from testbed.export.settings import Floods, settings_of
from testbed.plan import Plan


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was found.

    Attributes:
        unread: lines that no switch could carry out.
        settings: settings that are not as planned.
        walks: frames that do not go where they should.
        pairs: ordered pairs of hosts that were walked.
        broadcasts: whether the broadcast of each host was walked; not where they go to all members of a VLAN.
        other_plan: digest of the plan the files were written from, where that is another one.
    """

    unread: tuple[Problem, ...]
    settings: tuple[Difference, ...]
    walks: tuple[Difference, ...]
    pairs: int
    broadcasts: bool
    other_plan: str | None

    @property
    def same(self) -> bool:
        """Whether the files carry the plan out."""
        return not (self.unread or self.settings or self.walks)


def compare_files(
    plan: Plan, manifest: Mapping[str, Any], files: Mapping[str, str], *, running: bool = False
) -> Comparison:
    """Read the files of every switch, compare settings with the plan, and walk every pair and every broadcast.

    Args:
        plan: what should be.
        manifest: of the export (`export.json`).
        files: name → text.
        running: whether the files are not those of the export but what bridges show, see read_running().

    Raises:
        InputError: the manifest is not one of ours, or nothing reads its dialect back.
    """
    if manifest.get("schema_version") != SCHEMA_VERSION:
        sentence = f"has schema version {manifest.get('schema_version')}; this program reads {SCHEMA_VERSION}"
        raise InputError.one("export.json", sentence)
    name = str(manifest.get("dialect"))
    read = dialect_called(name).read
    if read is not None and running:
        read = read_running
    if read is None:
        known = ", ".join(key for key, other in DIALECTS.items() if other.read is not None)
        raise InputError.one("export.json", f"is in the dialect {name}, which nothing reads back; {known} can be")
    ports = port_names(str(manifest.get("ports")))
    macs, wrong = host_macs(plan, manifest.get("macs"))
    if wrong:
        raise InputError([Problem("export.json", problem.sentence) for problem in wrong])
    floods: Floods = "members" if manifest.get("floods") == "members" else "plan"
    planned = planned_bridges(settings_of(plan, floods), ports, macs)
    bridges = {}
    unread: list[Problem] = []
    for switch in planned:
        bridges[switch], problems = read(switch, files)
        unread += problems
    hosts = plan.topology.host_count
    digest = manifest.get("digest")
    return Comparison(
        unread=tuple(unread),
        settings=tuple(setting_differences(bridges, planned)),
        walks=tuple(walk_differences(plan, bridges, ports, macs, broadcasts=floods == "plan")),
        pairs=hosts * (hosts - 1),
        broadcasts=floods == "plan",
        other_plan=str(digest) if digest != plan.digest else None,
    )
