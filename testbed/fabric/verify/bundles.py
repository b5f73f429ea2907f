"""Aggregated links: what the members have in common, and that rules and groups treat them as one port."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from testbed.base.model import Bundles, Group, Rule, Topology, Violation

INVARIANT = "bundle"


@dataclass(frozen=True, slots=True)
class _End:
    """A bundle at one of its switches: logical channel that leaves by it, and the ports of its members."""

    channel: int
    switch: int
    ports: tuple[int, ...]


def check_bundles(
    topology: Topology, bundles: Bundles, groups: Sequence[Group], rules: Sequence[Rule]
) -> list[Violation]:
    """Every physical link in one bundle of its two switches, one port to the rest of the rules.

    That a plan never sends a frame back by the link that it came by is proved of logical links elsewhere; here, that a
    switch would not do it even if it were told to.

    Rules but those for arrival by further members and for the way out of bundles do no harm.
    """
    found = list(_members(topology, bundles))
    if found:
        return found
    ends = [end for end in _ends(bundles) if len(end.ports) > 1]
    found += _groups(topology, ends, groups)
    found += _arrivals(topology, ends, rules)
    found += _departures(topology, ends, rules)
    return found


def _ends(bundles: Bundles) -> Iterator[_End]:
    wiring = bundles.wiring
    for channel in range(2 * (len(bundles.start) - 1)):
        members = bundles.channels(channel)
        yield _End(channel, int(wiring.channel_source[members[0]]), tuple(int(wiring.out_port[c]) for c in members))


def _members(topology: Topology, bundles: Bundles) -> Iterator[Violation]:
    """Offsets that divide the physical links; members that join the two switches of their bundle, in its direction."""
    wiring, start = bundles.wiring, bundles.start
    whole = len(start) == topology.link_count + 1 and start[0] == 0 and start[-1] == wiring.link_count
    if not whole or (np.diff(start) < 1).any():
        yield Violation(INVARIANT, f"the bundles do not partition the {wiring.link_count} links")
        return
    logical = bundles.of_channel
    strange = (wiring.channel_source != topology.channel_source[logical]) | (
        wiring.channel_target != topology.channel_target[logical]
    )
    for channel in np.flatnonzero(strange).tolist():
        member, bundle = wiring.channel_name(channel), topology.channel_name(int(logical[channel]))
        yield Violation(
            INVARIANT, f"{member} is counted as a member of the bundle {bundle}, which it is not parallel to", (member,)
        )
    first = 2 * start[:-1, None] + np.arange(2)
    for channel in np.flatnonzero(topology.out_port != wiring.out_port[first.reshape(-1)]).tolist():
        name = topology.channel_name(channel)
        sentence = (
            f"the bundle {name} leaves by port {topology.out_port[channel]}, which is not that of its first member"
        )
        yield Violation(INVARIANT, sentence, (name,))


def _groups(topology: Topology, ends: Sequence[_End], groups: Iterable[Group]) -> Iterator[Violation]:
    """Each end has one group, of exactly its members."""
    wanted = {(end.switch, end.ports[0]): end for end in ends}
    had: set[tuple[int, int]] = set()
    for group in groups:
        key = (group.switch, group.number)
        name = f"group {group.number} of {topology.switch_name(group.switch)}"
        if key in had:
            yield Violation(INVARIANT, f"{name} is listed more than once", (name,))
        elif key not in wanted:
            yield Violation(INVARIANT, f"{name} belongs to no bundle", (name,))
        elif sorted(group.ports) != sorted(wanted[key].ports):
            ports, members = (" ".join(map(str, numbers)) for numbers in (group.ports, wanted[key].ports))
            sentence = f"{name} sends by the ports {ports or '(none)'} and its bundle has the ports {members}"
            yield Violation(INVARIANT, sentence, (topology.channel_name(wanted[key].channel),))
        had.add(key)
    for key, end in wanted.items():
        if key not in had:
            name = topology.channel_name(end.channel)
            yield Violation(INVARIANT, f"the bundle {name} has no group, so nothing is sent by it", (name,))


def _arrivals(topology: Topology, ends: Sequence[_End], rules: Sequence[Rule]) -> Iterator[Violation]:
    """What arrives by a further member is treated as by the first."""
    taken_for: dict[tuple[int, int], list[int]] = {}
    for rule in rules:
        match, values = dict(rule.match), [value for action, value in rule.actions if action == "set_in_port"]
        again = rule.actions[-1:] == (("resubmit", rule.table),)
        if set(match) == {"in_port"} and values and again:
            taken_for.setdefault((rule.switch, int(match["in_port"])), []).append(values[-1])
    for end in ends:
        for number, port in enumerate(end.ports):
            found = taken_for.pop((end.switch, port), [])
            if found == ([end.ports[0]] if number else []):
                continue
            place = f"port {port} of {topology.switch_name(end.switch)}"
            instead = f"for port {' and '.join(map(str, found))}" if found else "for no other"
            sentence = (
                f"frames that arrive by {place} are taken {instead}, and the first of its bundle is {end.ports[0]}"
            )
            yield Violation(INVARIANT, sentence, (place,))
    for (switch, port), found in taken_for.items():
        place = f"port {port} of {topology.switch_name(switch)}"
        sentence = f"frames that arrive by {place} are taken for port {found[0]}, and it is in no bundle"
        yield Violation(INVARIANT, sentence, (place,))


def _departures(topology: Topology, ends: Sequence[_End], rules: Sequence[Rule]) -> Iterator[Violation]:
    """What is for a bundle goes to its group, and is dropped if it came by the same bundle."""
    by_bundle: dict[tuple[int, int], list[Rule]] = {}
    for rule in rules:
        match = dict(rule.match)
        if "bundle" in match:
            by_bundle.setdefault((rule.switch, int(match["bundle"])), []).append(rule)
    for end in ends:
        port, name = end.ports[0], topology.channel_name(end.channel)
        here = sorted(by_bundle.get((end.switch, port), ()), key=lambda rule: -rule.priority)
        onward = next((rule for rule in here if "in_port" not in dict(rule.match)), None)
        if onward is None or onward.actions != (("group", port),):
            yield Violation(INVARIANT, f"frames for the bundle {name} are not handed to its group", (name,))
        back = next((rule for rule in here if dict(rule.match).get("in_port", port) == port), None)
        if back is not None and back.actions:
            came_by = topology.channel_name(end.channel ^ 1)
            sentence = f"frames that come by the bundle {came_by} may go back by another of its members"
            yield Violation(INVARIANT, sentence, (name,))
