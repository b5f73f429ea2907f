"""The shares of the processors that a lab's hosts have."""

from __future__ import annotations

import os

from testbed.base.errors import LabError
from testbed.base.messages import CpuShare
from testbed.engines.lab.build_order import BuildOrder
from testbed.engines.lab.hosts import cgroup

# The rest is for the switches, which in a software lab cost as much as what sends through them.
_FOR_HOSTS = 0.5


def processors() -> int:
    """How many this machine has for a lab."""
    return len(os.sched_getaffinity(0))


def most_share(hosts: int) -> float:
    """Largest share of a host, in processors, that leaves the switches enough on this machine."""
    return share_of(processors(), hosts)


def share_of(count: int, hosts: int) -> float:
    """The same on a machine of so many processors."""
    return _FOR_HOSTS * count / max(hosts, 1)


class HostShares:
    """Gives hosts their shares, and says what they have; none where the order of the lab asks for none.

    Attributes:
        hierarchy: where the groups of hosts are made; None = this machine has none.
    """

    def __init__(self) -> None:
        self.hierarchy: cgroup.Hierarchy | None = None
        self._group: cgroup.LabGroup | None = None

    @property
    def has_shares(self) -> bool:
        """Whether hosts have shares."""
        return self._group is not None

    def give(self, order: BuildOrder) -> dict[str, str]:
        """Give each host the share that an order asks for; returns what files() does.

        Raises:
            LabError: it cannot be given.
        """
        if order.cpu_share is None:
            return {}
        if self.hierarchy is None:
            raise LabError("hosts cannot have a share of the processors here; `testbed doctor` says why")
        if self._group is None:
            self._group = cgroup.LabGroup(self.hierarchy, order.name)
        self._group.limit([host.name for host in order.hosts], order.cpu_share)
        problems = self._group.problems()
        if problems:
            raise LabError(f"{len(problems)} hosts have another share than asked for: {problems[0]}")
        return self.files()

    def files(self) -> dict[str, str]:
        """The file by which processes join the share of their host, by host; empty where hosts have none."""
        return self._group.procs() if self._group else {}

    def problems(self) -> list[str]:
        """Differences between the shares asked for and the kernel's; one sentence each."""
        return self._group.problems() if self._group else []

    def read_back(self) -> CpuShare | None:
        """The share of every host as the kernel has it, None where they have none."""
        if self._group is None:
            return None
        limit = next(iter(self._group.read_back().values()), None)
        if limit is None:
            return None
        return CpuShare(limit.share, limit.quota, limit.period)
