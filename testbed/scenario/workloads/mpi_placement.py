"""Which host each rank of an MPI job runs on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from testbed.base.errors import Problem, did_you_mean
from testbed.base.model import Topology
from testbed.scenario.workloads.spec import Mpi

_SHOWN_HOSTS = 8


@dataclass(frozen=True, slots=True)
class Ranks:
    """The ranks of a job and their hosts."""

    hosts: tuple[int, ...]  # host number of each rank

    def __len__(self) -> int:
        """Return the number of ranks."""
        return len(self.hosts)

    def on_different_hosts(self, one: int, other: int) -> bool:
        """Whether two ranks are on different hosts, so that what they send each other crosses the fabric."""
        return self.hosts[one] != self.hosts[other]

    def pairs_apart(self, group: Iterable[int] | None = None) -> int:
        """Ordered pairs of ranks on different hosts, among a group of ranks or all."""
        here = Counter(self.hosts if group is None else [self.hosts[rank] for rank in group])
        everyone = sum(here.values())
        return sum(count * (everyone - count) for count in here.values())

    def hosts_of(self, group: Iterable[int]) -> int:
        """Number of hosts that have a rank of a group."""
        return len({self.hosts[rank] for rank in group})

    def name(self, rank: int, topology: Topology) -> str:
        """`h1`, or `h1/3` for rank 3 where several ranks share h1."""
        host = self.hosts[rank]
        name = topology.host_name(host)
        return name if self.hosts.count(host) == 1 else f"{name}/{rank}"


def place_ranks(spec: Mpi, topology: Topology) -> Ranks:
    """Return where the ranks run, once placement_problems has found nothing.

    Without `ranks` there is one on each host. `block` fills one host after the other, the first ones with one more
    where the ranks do not share out evenly; `round_robin` goes around. Up to one a host both give rank i to host i.
    """
    hosts = topology.host_count
    if isinstance(spec.placement, tuple):
        numbers = {topology.host_name(host): host for host in range(hosts)}
        return Ranks(tuple(numbers[name] for name in spec.placement))
    ranks = hosts if spec.ranks is None else spec.ranks
    if spec.placement == "round_robin" or ranks <= hosts:
        return Ranks(tuple(rank % hosts for rank in range(ranks)))
    least, larger = divmod(ranks, hosts)
    return Ranks(tuple(host for host in range(hosts) for _ in range(least + (host < larger))))


def placement_problems(spec: Mpi, topology: Topology) -> list[Problem]:
    """What is wrong with the ranks of a job on a topology of two hosts or more; places are keys of the workload."""
    problems = []
    listed = isinstance(spec.placement, tuple)
    if isinstance(spec.placement, tuple):
        problems = _unknown_hosts(spec.placement, topology)
        if spec.ranks is not None and spec.ranks != len(spec.placement):
            sentence = (
                f"is {spec.ranks}, but placement lists the hosts of {len(spec.placement)} ranks; "
                "leave ranks out, or list as many hosts"
            )
            problems.append(Problem("ranks", sentence))
    if problems:
        return problems
    used = Counter(place_ranks(spec, topology).hosts)
    if len(used) < 2:
        sentence = f"all {sum(used.values())} ranks are on one host, so nothing would cross the fabric; use two or more"
        problems.append(Problem("placement", sentence))
    elif spec.pattern is not None and (len(used) < topology.host_count or max(used.values()) > 1):
        sentence = (
            f"a pattern needs one rank on each of the {topology.host_count} hosts; leave "
            f"{'placement' if listed else 'ranks'} out"
        )
        problems.append(Problem("placement" if listed else "ranks", sentence))
    return problems


def _unknown_hosts(names: Iterable[str], topology: Topology) -> list[Problem]:
    known = [topology.host_name(host) for host in range(topology.host_count)]
    shown = ", ".join(known) if len(known) <= _SHOWN_HOSTS else f"{known[0]} to {known[-1]}"
    return [
        Problem("placement", f'there is no host "{name}".{did_you_mean(name, known)} Known: {shown}')
        for name in dict.fromkeys(names)
        if name not in known
    ]
