"""Events of a timeline (failures and repairs), and the things they name, in the numbers of a topology."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testbed.base.errors import Problem, did_you_mean
from testbed.base.model import Topology
from testbed.fabric.topologies.any_graph import quote_name
from testbed.scenario.workloads.timeline import MANAGER, OPPOSITE, Event

_PORT = re.compile(r"(.+)-eth([0-9]+)")
_MAX_NAMED = 8
# Link or host, and switch and port of the end that is meant.
_Found = tuple[int | None, int | None, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Change:
    """An event in the numbers of a topology."""

    event: Event  # as it was written
    links: tuple[int, ...]  # what goes down, comes up or changes
    hosts: tuple[int, ...]  # whose ports do
    switches: tuple[int, ...]  # what is killed or started
    # switch and port whose end of the link is set down or up; of a link the end with the lower switch; none where it
    # changes otherwise
    ends: tuple[tuple[int, int], ...]
    manager: bool = False  # whether the lab's manager is killed, or those that were are started

    @property
    def fails(self) -> bool:
        """Whether something dies or comes back."""
        return self.event.action != "link"


class ElementNames:
    """What the targets of events may be called, in one fabric."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._switches = {topology.switch_name(number): number for number in range(topology.switch_count)}
        self._switches |= {label: number for number, label in enumerate(topology.switch_labels)}
        self._hosts = {topology.host_name(number): number for number in range(topology.host_count)}
        self._links: dict[tuple[int, int, int], int] = {}
        for link, (one, other) in enumerate(topology.links.tolist()):
            plane = int(topology.plane[link])
            self._links[one, other, plane] = self._links[other, one, plane] = link

    def change(self, event: Event, place: str, problems: list[Problem]) -> Change:
        """Find what an event speaks of; adds a problem for each target that there is not."""
        links, hosts, switches, ends = [], [], [], []
        if event.action in ("kill", "start") and MANAGER in event.targets and MANAGER not in self._switches:
            if len(event.targets) > 1:
                sentence = "manager stands alone; make an event of its own of it, which may have the same time"
                problems.append(Problem(place, sentence))
            return Change(event, (), (), (), (), manager=True)
        for target in event.targets:
            if event.action in ("kill", "start"):
                if target in self._switches:
                    switches.append(self._switches[target])
                else:
                    problems.append(
                        Problem(
                            place,
                            f"there is no switch {quote_name(target)}.{self._suggest_target(target, links=False)}",
                        )
                    )
                continue
            found = self.find(target)
            if isinstance(found, str):
                if target in self._switches and event.action != "link":
                    found = (
                        f'{quote_name(target)} is a switch: "kill {target}" ends it; down is for links, ports and hosts'
                    )
                problems.append(Problem(place, found))
                continue
            link, host, end = found
            if event.action == "link":
                if link is None:
                    sentence = (
                        f"{quote_name(target)} is no link between switches; others keep their rate, delay and loss"
                    )
                    problems.append(Problem(place, sentence))
                else:
                    links.append(link)
                continue
            links += [link] if link is not None else []
            hosts += [host] if host is not None else []
            ends.append(end)
        return Change(event, tuple(links), tuple(hosts), tuple(switches), tuple(ends))

    def find(self, target: str) -> _Found | str:
        """Link or host that a name means, and switch and port of the end that it names; or what is wrong with it."""
        topology = self._topology
        if target in self._hosts:
            host = self._hosts[target]
            return None, host, (int(topology.host_switch[host]), int(topology.host_port[host]))
        port = _PORT.fullmatch(target)
        if port is not None and port[1] in self._switches:
            return self._port(self._switches[port[1]], int(port[2]), target)
        return self._link(target)

    def _link(self, target: str) -> _Found | str:
        topology = self._topology
        name, _, plane = target.partition("#")
        pair = self._pair(name)
        if pair is None:
            if target in self._switches:
                return (
                    f"{quote_name(target)} is a switch; name one of its links or ports, such as {self._link_of(target)}"
                )
            return f"there is no link, port or host {quote_name(target)}.{self._suggest_target(target, links=True)}"
        if plane and not plane.isdecimal():
            return f"{quote_name(target)} should end in the number of a plane, such as {name}#1"
        link = self._links.get((*pair, int(plane or 0)))
        if link is None:
            return self._no_link(pair, int(plane or 0))
        return link, None, (int(topology.channel_source[2 * link]), int(topology.out_port[2 * link]))

    def _pair(self, name: str) -> tuple[int, int] | None:
        """The two switches of `s3-s7`; names may have hyphens of their own."""
        parts = name.replace("–", "-").split("-")
        for at in range(1, len(parts)):
            one, other = "-".join(parts[:at]), "-".join(parts[at:])
            if one in self._switches and other in self._switches:
                return self._switches[one], self._switches[other]
        return None

    def _port(self, switch: int, port: int, target: str) -> _Found | str:
        topology = self._topology
        for channel in np.flatnonzero(topology.channel_source == switch).tolist():
            if topology.out_port[channel] == port:
                return channel // 2, None, (switch, port)
        for host in np.flatnonzero(topology.host_switch == switch).tolist():
            if topology.host_port[host] == port:
                return None, host, (switch, port)
        return f"there is no port {quote_name(target)}; {topology.switch_name(switch)} has ports 1 to " + str(
            int(topology.port_count[switch])
        )

    def _no_link(self, pair: tuple[int, int], plane: int) -> str:
        topology = self._topology
        one, other = (topology.switch_name(switch) for switch in pair)
        if (*pair, 0) in self._links:
            last = sum((*pair, number) in self._links for number in range(topology.parallel_links)) - 1
            there = f"planes 0 to {last}" if last else "a single link, plane 0"
            return f"{one} and {other} have {there}, and no plane {plane}"
        near = sorted({end for start, end, _ in self._links if start == pair[0]})
        names = ", ".join(topology.switch_name(switch) for switch in near[:_MAX_NAMED])
        more = f" and {len(near) - _MAX_NAMED} more" if len(near) > _MAX_NAMED else ""
        return (
            f"no link joins {quote_name(one)} and {quote_name(other)}; {one} is linked to {names or 'no switch'}{more}"
        )

    def _link_of(self, name: str) -> str:
        """A link of a switch, as it is written."""
        topology, switch = self._topology, self._switches[name]
        channels = np.flatnonzero(topology.channel_source == switch)
        return topology.channel_name(int(channels[0])).replace("→", "-") if len(channels) else f"{name}-eth1"

    def _suggest_target(self, target: str, *, links: bool) -> str:
        if not links:
            return did_you_mean(target, [*self._switches, MANAGER])
        topology = self._topology
        names = (topology.channel_name(2 * link).replace("→", "-") for link in range(topology.link_count))
        return did_you_mean(target, [*self._hosts, *names])


def changes_of(topology: Topology, events: Sequence[Event], place: str) -> tuple[list[Change], list[Problem]]:
    """The events in numbers, and what is wrong with them: unknown names, the dead that die, the living that rise.

    `place` is that of the list, such as `workloads.0.failures`.
    """
    names, problems, found = ElementNames(topology), list[Problem](), list[Change]()
    down: dict[str, dict[int, Event]] = {"link": {}, "host": {}, "switch": {}}
    for number, event in enumerate(events):
        where = f"{place}.{number}"
        change = names.change(event, where, problems)
        found.append(change)
        if not change.fails:
            continue
        for kind, members in (("link", change.links), ("host", change.hosts), ("switch", change.switches)):
            for member in members:
                problems += _state_problem(topology, kind, member, event, down[kind], where)
    return found, list(dict.fromkeys(problems))


def _state_problem(
    topology: Topology, kind: str, member: int, event: Event, down: dict[int, Event], where: str
) -> list[Problem]:
    name = {
        "link": lambda: topology.channel_name(2 * member).replace("→", "-"),
        "host": lambda: topology.host_name(member),
        "switch": lambda: topology.switch_name(member),
    }[kind]()
    if event.action in ("down", "kill"):
        before = down.setdefault(member, event)
        if before is event and event.targets.count(name) < 2:
            return []
        how = f'since "{before}"' if before is not event else "by the same event"
        return [Problem(where, f"{name} is dead already {how}; {OPPOSITE[event.action]} comes first")]
    if down.pop(member, None) is None:
        return [Problem(where, f"{name} is not dead then; {OPPOSITE[event.action]} comes before {event.action}")]
    return []
