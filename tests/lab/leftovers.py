"""What a test has left behind: of all that is on the machine, only what the test itself made.

Every program that a test starts inherits a mark in its environment, and with it all that runs in the labs it builds.
So other labs may come and go meanwhile.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from testbed.engines.lab.control import registry
from testbed.engines.lab.hosts import cgroup

MARK = "TESTBED_TEST"


def processes_of(mark: str) -> dict[int, str]:
    """Pid → command of each process with a mark that runs."""
    found = {}
    wanted = f"{MARK}={mark}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it has ended meanwhile
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ").strip()
    return found


def holders_of_groups() -> dict[str, int | None]:
    """Labs' groups of processes → process 1 of the lab, which holds a lock on it; None where it has ended."""
    hierarchy = cgroup.find_hierarchy()
    if hierarchy is None:
        return {}
    locks = {}
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()  # such as 1: FLOCK ADVISORY WRITE 811 00:29:7 0 EOF
        if "->" not in words and words[1] == "FLOCK":
            locks[int(words[5].rsplit(":", 1)[1])] = int(words[4])
    found: dict[str, int | None] = {}
    for folder in hierarchy.root.glob("testbed-lab-*"):
        with suppress(FileNotFoundError):
            found[folder.name] = locks.get(folder.stat().st_ino)
    return found


def group_of(init: int) -> Path | None:
    """The group of the lab with this process 1, or None where it has none."""
    hierarchy = cgroup.find_hierarchy()
    names = [name for name, holder in holders_of_groups().items() if holder == init]
    return hierarchy.root / names[0] if hierarchy is not None and names else None


@dataclass(frozen=True)
class Outside:
    """What is outside all labs, which no lab may change.

    Attributes:
        links: interfaces of the machine.
        namespaces: names of network namespaces.
        bridges: of the system's Open vSwitch, where it runs.
        remains: groups and records of labs that have ended.
    """

    links: frozenset[str]
    namespaces: frozenset[str]
    bridges: str
    remains: frozenset[str]

    @classmethod
    def now(cls) -> Outside:
        show = [["ip", "-o", "link", "show"], ["ip", "netns", "list"]]
        links, namespaces = (subprocess.run(c, capture_output=True, text=True, check=True).stdout for c in show)
        bridges = ""
        if Path("/var/run/openvswitch/db.sock").exists():
            asked = subprocess.run(["ovs-vsctl", "--timeout=5", "show"], capture_output=True, text=True, check=False)
            bridges = asked.stdout
        names = (line.split(": ")[1] for line in links.splitlines())
        return cls(frozenset(names), frozenset(namespaces.splitlines()), bridges, frozenset(_remains()))

    def changes(self, after: Outside) -> Iterator[str]:
        """What is different, one sentence each."""
        for what, old, new in (
            ("interface", self.links, after.links),
            ("network namespace", self.namespaces, after.namespaces),
        ):
            yield from (f"{what} {name} was not there before" for name in sorted(new - old))
            yield from (f"{what} {name} is gone" for name in sorted(old - new))
        # Of labs that ended while the test ran, whoever made them, each is also removed soon.
        yield from (f"{what} remains of a lab that has ended" for what in sorted(after.remains - self.remains))
        if self.bridges != after.bridges:
            yield f"the system's Open vSwitch was {self.bridges!r} and is {after.bridges!r}"


def leftovers(mark: str, before: Outside) -> list[str]:
    """What there is of a test that should have ended, one sentence each.

    Args:
        mark: of all that the test started.
        before: what was outside all labs when it began.
    """
    ours = processes_of(mark)
    found = [f"process {pid} runs: {command}" for pid, command in ours.items()]
    return found + list(before.changes(Outside.now()))


def _remains() -> Iterator[str]:
    yield from (f"group {name}" for name, holder in holders_of_groups().items() if holder is None)
    for file in registry.FOLDER.glob("*.json"):
        # What else is remembered there, such as whether KVM boots, names no process.
        with suppress(OSError, ValueError, KeyError):
            record = json.loads(file.read_text())  # of a lab, or of what this machine can do
            if "init" in record and not Path(f"/proc/{record['init']}").exists():
                yield f"record {file}"
