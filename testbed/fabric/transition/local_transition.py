"""From one plan to the next where VLANs mean something inside one switch only (assignment `renamed`).

Frames have no tag between switches, so a frame under way meets the rules of both plans. Every state delivers it
nevertheless, since ports change one after the other, against the direction of the new paths: a port changes its PVID
when all ports that frames reach from it on new paths have theirs. A frame then follows its old path as far as the
first port that has changed and is on a new path to its destination, and from there the new one to the end.

A changed port that old paths pass and new ones do not, for some destinations, keeps the old entries of these until
the frames on old paths have arrived: in a VLAN of its own, which is there for that time alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from testbed.base.errors import InputError
from testbed.base.model import LocalPlan, Routes, Rule, Topology, Violation, host_mac
from testbed.fabric.openflow.compile import compile_rules
from testbed.fabric.openflow.oracle import Oracle
from testbed.fabric.openflow.tables import FORWARDING, INGRESS, UNTAGGED, Priority
from testbed.fabric.routing.paths import path
from testbed.fabric.transition.steps import TRANSITION, Step, Transition, place, sort_rules
from testbed.fabric.vlans.fixed import LAST_VLAN_ID

Port = tuple[int, int]  # switch, port by which a frame comes
_MAX_SHOWN = 5


@dataclass(frozen=True, slots=True)
class _Ways:
    """Where frames come by on the paths of a plan."""

    hosts: dict[Port, set[int]]  # destination hosts of the frames that come by each port
    after: dict[Port, set[Port]]  # ports by which they come next


def _ways(topology: Topology, routes: Routes) -> _Ways:
    found = _Ways(defaultdict(set), defaultdict(set))
    ends = list(zip(topology.host_switch.tolist(), topology.host_port.tolist(), strict=True))
    enters = np.arange(len(topology.channel_source)) ^ 1
    arrivals = list(zip(topology.channel_target.tolist(), topology.out_port[enters].tolist(), strict=True))
    for source, own in enumerate(ends):
        for end in range(topology.host_count):
            if end == source:
                continue
            ports = [own, *(arrivals[channel] for channel in path(topology, routes, source, end))]
            for port, following in zip(ports, [*ports[1:], None], strict=True):
                found.hosts[port].add(end)
                if following is not None:
                    found.after[port].add(following)
    return found


def make_local_transition(
    topology: Topology,
    old: tuple[Routes, LocalPlan],
    new: tuple[Routes, LocalPlan],
    *,
    on: tuple[int, ...] = (),
    off: tuple[int, ...] = (),
) -> Transition:
    """Work out the steps; arguments are those of make_transition(), with the paths of both plans.

    Raises:
        InputError: new paths wait for each other in a cycle, so that no port can be the first.
    """
    before, after = set(compile_rules(topology, old[1])), set(compile_rules(topology, new[1]))
    ways = _ways(topology, old[0]), _ways(topology, new[0])
    level = _levels(topology, ways[1])
    were, will = _ingress(before), _ingress(after)
    tables = _tables(before | after)
    taken: dict[int, set[int]] = defaultdict(set)
    for switch, tag in tables:
        taken[switch].add(tag)
    added, moves, last = after - before, defaultdict(list), []
    for port in sorted(were.keys() & will.keys()):
        was, then = were[port], will[port]
        if was == then:
            continue
        if not ways[1].hosts.get(port):
            # Nothing comes by it any more, but old frames and perhaps broadcasts: it changes after the former.
            last.append((was, then))
            continue
        left = ways[0].hosts.get(port, set()) - ways[1].hosts[port]
        first = then
        if left:
            first, entries = _make_interim_rules(was, then, {host_mac(host) for host in left}, tables, taken[port[0]])
            added |= entries
            last.append((first, then))
        moves[level.get(port, 0)].append((was, first))
    places = {place(rule) for rule in before}
    pairs = [*(pair for at in sorted(moves) for pair in moves[at]), *last]
    goal = {place(rule): rule for rule in after}
    gone = {rule for rule in before | added if place(rule) not in goal}
    steps = [
        Step("links on", links=on),
        Step("add", sort_rules(rule for rule in added if place(rule) not in places)),
        *(_move(moves[at]) for at in sorted(moves)),
        *([Step("drain")] if pairs else []),
        _move(last),
        Step("remove", sort_rules(gone)),
        Step("links off", links=off),
    ]
    return Transition(
        old[1], new[1], tuple(step for step in steps if step.rules or step.links or step.action == "drain")
    )


def _move(pairs: Sequence[tuple[Rule, Rule]]) -> Step:
    return Step("move", tuple(then for _, then in pairs), replaced=tuple(was for was, _ in pairs))


def _levels(topology: Topology, ways: _Ways) -> dict[Port, int]:
    """The longest way from each port to an end of the paths, in ports."""
    found: dict[Port, int] = {}
    left = {port: set(ways.after.get(port, ())) for port in ways.hosts}
    while left:
        ready = [port for port, following in left.items() if not following]
        if not ready:
            switch, number = min(left)
            raise InputError.one(
                "assignment.kind",
                f"its paths wait for each other in a cycle, through port {number} of {topology.switch_name(switch)}: "
                "with VLANs of one switch ports change against the direction of the paths, and none can be the first",
            )
        for port in ready:
            found[port] = 1 + max((found[one] for one in ways.after.get(port, ())), default=-1)
            del left[port]
        for following in left.values():
            following.difference_update(ready)
    return found


def _ingress(rules: Collection[Rule]) -> dict[Port, Rule]:
    """The rule that takes in what comes by each port."""
    return {
        (rule.switch, int(dict(rule.match)["in_port"])): rule
        for rule in rules
        if rule.table == INGRESS.number and rule.priority == Priority.ADMIT
    }


def _tag(rule: Rule) -> int:
    return dict(rule.actions).get("push_vlan", UNTAGGED)


def _tables(rules: Collection[Rule]) -> dict[tuple[int, int], list[Rule]]:
    """Rules of forwarding by switch and VLAN."""
    found: dict[tuple[int, int], list[Rule]] = defaultdict(list)
    for rule in rules:
        if rule.table == FORWARDING.number:
            found[rule.switch, int(dict(rule.match)["dl_vlan"])].append(rule)
    return found


def _make_interim_rules(
    was: Rule, then: Rule, left: Collection[str], tables: dict[tuple[int, int], list[Rule]], taken: set[int]
) -> tuple[Rule, set[Rule]]:
    """A port's rule for the time of the change, and the rules of the VLAN that it leads to.

    `left`: addresses to which old paths pass the port and new ones do not; `taken`: identifiers of the switch.
    """
    free = next((number for number in range(LAST_VLAN_ID, 0, -1) if number not in taken), None)
    if free is None:
        raise InputError.one("assignment.kind", "a switch has no identifier left for the time of the change")
    taken.add(free)
    rules = [rule for rule in tables[was.switch, _tag(was)] if dict(rule.match).get("dl_dst") in left]
    rules += [rule for rule in tables[was.switch, _tag(then)] if dict(rule.match).get("dl_dst") not in left]
    entries = {replace(rule, match=(("dl_vlan", free), *rule.match[1:])) for rule in rules}
    return replace(then, actions=(("push_vlan", free), *then.actions[1:])), entries


def local_successor(topology: Topology, old: LocalPlan, new: LocalPlan, *others: LocalPlan) -> LocalPlan:
    """The new local VLANs with identifiers that do not clash with the old ones of their switch; see successor().

    Raises:
        InputError: a switch needs more identifiers than 802.1Q has.
    """
    known = {key: int(old.vlan_id[vlan]) for vlan, key in enumerate(_contents(topology, old))}
    taken: dict[int, set[int]] = defaultdict(set)
    for plan in (old, *others):
        for switch, number in zip(plan.vlan_switch.tolist(), plan.vlan_id.tolist(), strict=True):
            taken[switch].add(number)
    first = int(min(old.vlan_id.min(), new.vlan_id.min()))
    ids = []
    for switch, key in zip(new.vlan_switch.tolist(), _contents(topology, new), strict=True):
        identifier = known.get(key)
        if identifier is None:
            identifier = next((one for one in range(first, LAST_VLAN_ID) if one not in taken[switch]), None)
        if identifier is None:
            raise InputError.one(
                "assignment.first_vlan",
                f"{topology.switch_name(switch)} needs more local VLANs for old and new paths together than there are "
                f"from {first} to {LAST_VLAN_ID}; start lower",
            )
        taken[switch].add(identifier)
        ids.append(identifier)
    return replace(new, vlan_id=np.array(ids, dtype=np.int32))


def _contents(topology: Topology, plan: LocalPlan) -> list[tuple[object, ...]]:
    """What makes two local VLANs the same: switch, ports that lead to it, and what it does with a frame."""
    rules = compile_rules(topology, plan)
    ports: dict[tuple[int, int], list[int]] = defaultdict(list)
    for (switch, port), rule in sorted(_ingress(rules).items()):
        ports[switch, _tag(rule)].append(port)
    tables = _tables(rules)
    return [
        (key[0], tuple(ports[key]), frozenset((rule.match[1:], rule.actions) for rule in tables[key]))
        for key in zip(plan.vlan_switch.tolist(), plan.vlan_id.tolist(), strict=True)
    ]


def local_transition_problems(
    topology: Topology, transition: Transition, down: Collection[int] = ()
) -> list[Violation]:
    """Walk every state of a transition, from each place where a frame can be. Links `down` are off when it begins.

    Ports of one step may change in any order: so no frame that one of them sends another way may come by a second one.
    """
    assert isinstance(transition.old, LocalPlan)
    rules = {place(rule): rule for rule in compile_rules(topology, transition.old)}
    floods = transition.old.flood_links is not None
    off, found = set(down), []
    state = _TransitionState(topology, [*rules.values()], off)
    under_way = state.follow_all(state.entries)
    for number, step in enumerate(transition.steps, 1):
        where = f"step {number}, {step.action}"
        step.carried_out(rules, off)
        before, state = state, _TransitionState(topology, [*rules.values()], off)
        told = [*_out_of_order(before, state, under_way)] if step.action == "move" else []
        # Frames that have come so far go on by the rules of now; a step may wait until only those of now are left.
        under_way = state.follow_all(state.entries if step.action == "drain" else under_way)
        told += state.problems(under_way, floods=floods)
        found += [Violation(TRANSITION, f"{where}: {one}") for one in told[:_MAX_SHOWN]]
    return found[:_MAX_SHOWN]


def _out_of_order(
    before: _TransitionState, after: _TransitionState, under_way: Collection[tuple[Port, int]]
) -> Iterator[str]:
    """Frames that one changed port sends another way, to a second one that does so as well."""
    changing = {one for one in after.follow_all(under_way) if before.step(*one) != after.step(*one)}
    for port, host in sorted(changing):
        following = after.step(port, host)[1]
        for met in before.ports(following, host) if following else ():
            if (met, host) in changing:
                names = f"{before.name_port(port)} and then by {before.name_port(met)}, which change in one step"
                yield f"frames for {before.topology.host_name(host)} come by {names}"


class _TransitionState:
    """Frames on the rules of one state; links `off` carry none. A frame is told by its port and its host."""

    def __init__(self, topology: Topology, rules: list[Rule], off: Collection[int]) -> None:
        self.topology, self._off = topology, set(off)
        self._oracle = Oracle(topology, rules)
        leaving = zip(topology.channel_source.tolist(), topology.out_port.tolist(), strict=True)
        self._channel = {port: channel for channel, port in enumerate(leaving)}
        self._next: dict[tuple[Port, int], tuple[str, Port | None]] = {}

    @property
    def entries(self) -> list[tuple[Port, int]]:
        """Frames as hosts send them."""
        ends = list(zip(self.topology.host_switch.tolist(), self.topology.host_port.tolist(), strict=True))
        return [(port, host) for sender, port in enumerate(ends) for host in range(len(ends)) if host != sender]

    def follow_all(self, frames: Collection[tuple[Port, int]]) -> set[tuple[Port, int]]:
        """These and what they become on their way."""
        return {(port, host) for begin, host in frames for port in self.ports(begin, host)}

    def ports(self, port: Port, host: int) -> Iterator[Port]:
        """The ports by which a frame for a host comes from one port on, that one included."""
        seen: set[Port] = set()
        following: Port | None = port
        while following is not None and following not in seen:
            seen.add(following)
            yield following
            following = self.step(following, host)[1]

    def problems(self, under_way: Collection[tuple[Port, int]], *, floods: bool) -> Iterator[str]:
        """What is wrong with frames that come by a port, and with broadcasts; nothing where all is right."""
        for port, host in sorted(under_way):
            *_, last = self.ports(port, host)
            wrong, following = self.step(last, host)
            if wrong or following is not None:
                came = f"a frame for {self.topology.host_name(host)} that comes by {self.name_port(port)}"
                yield f"{came} {wrong or 'circulates'}"
        everyone = range(self.topology.host_count)
        for source in everyone:
            flood = self._oracle.broadcast(source)
            wanted = {host: 1 for host in everyone if floods and host != source}
            name = self.topology.host_name(source)
            if flood.endless or flood.received != wanted:
                yield f"a broadcast of {name} does not reach every other host once"
            dead = [channel for channel in flood.channels if channel // 2 in self._off]
            if dead:
                yield f"a broadcast of {name} takes {self.topology.channel_name(dead[0])}, which is off"

    def name_port(self, port: Port) -> str:
        return f"port {port[1]} of {self.topology.switch_name(port[0])}"

    def step(self, port: Port, host: int) -> tuple[str, Port | None]:
        """What is wrong there, if anything, and the next port; None where the frame ends."""
        found = self._next.get((port, host))
        if found is None:
            found = self._next[port, host] = self._forward(port, host)
        return found

    def _forward(self, port: Port, host: int) -> tuple[str, Port | None]:
        topology = self.topology
        # From none of the hosts: whom it comes from, no rule of such a plan asks.
        sender = host_mac(topology.host_count)
        copies = self._oracle.at_switch(port[0], port[1], (UNTAGGED, 0), sender, host_mac(host))
        if len(copies) != 1 or copies[0][1] != (UNTAGGED, 0):
            return f"gets lost or is copied at {topology.switch_name(port[0])}", None
        ((out,), _) = copies[0]
        channel = self._channel.get((port[0], out))
        if channel is None:
            here = (topology.host_switch[host], topology.host_port[host]) == (port[0], out)
            return ("" if here else "is delivered to another host"), None
        if channel // 2 in self._off:
            return f"takes {topology.channel_name(channel)}, which is off", None
        return "", (int(topology.channel_target[channel]), int(topology.out_port[channel ^ 1]))
