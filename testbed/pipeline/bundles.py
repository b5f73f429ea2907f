"""Aggregated links: a group for each bundle and switch, and the rules that make its members one logical port.

A logical port has the number of its first member. A frame that arrives by another member is given that number as its
in-port and begins again, so that no other rule has to know of members. A rule that sends to a bundle names it and asks
the last table, which drops what came by the same bundle and hands the rest to the group. OpenFlow itself would only
keep a frame from the member that it came by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from testbed.model import Bundles, Group, Rule
from testbed.pipeline.tables import EGRESS, INGRESS, Priority

# Layers 2, 3 and 4, as far as a frame has them. No PVID: it is the same for all frames of a host.
HASH_FIELDS = ("eth_src", "eth_dst", "ip_src", "ip_dst", "tcp_src", "tcp_dst", "udp_src", "udp_dst")


def compile_groups(bundles: Bundles | None) -> tuple[Group, ...]:
    """The group of each bundle at both of its switches, by switch and number; a single link needs none."""
    if bundles is None:
        return ()
    groups = (Group(switch, ports[0], ports) for switch, ports in _ends(bundles))
    return tuple(sorted(groups, key=lambda group: (group.switch, group.number)))


def bundle_rules(bundles: Bundles) -> list[Rule]:
    """The rules that stand beside those of the plan: arrival by further members, and the way out of each bundle."""
    rules = []
    for switch, (first, *others) in _ends(bundles):
        for port in others:
            actions = (("set_in_port", first), ("resubmit", INGRESS.number))
            rules.append(Rule(switch, INGRESS.number, Priority.MEMBER, (("in_port", port),), actions))
        out = ("bundle", first)
        rules.append(Rule(switch, EGRESS.number, Priority.SAME_BUNDLE, (out, ("in_port", first)), ()))
        rules.append(Rule(switch, EGRESS.number, Priority.BUNDLE, (out,), (("group", first),)))
    return rules


def through_bundles(rules: Iterable[Rule], bundles: Bundles) -> Iterator[Rule]:
    """The rules of a plan, with the logical ports that are bundles in place of output ports."""
    ends = {(switch, ports[0]) for switch, ports in _ends(bundles)}
    for rule in rules:
        actions: list[tuple[str, int]] = []
        for action, value in rule.actions:
            if action == "output" and (rule.switch, value) in ends:
                actions += [("set_bundle", value), ("resubmit", EGRESS.number)]
            else:
                actions.append((action, value))
        yield replace(rule, actions=tuple(actions))


def count_bundle_rules(bundles: Bundles | None) -> int:
    """Number of bundle_rules(), without making them."""
    if bundles is None:
        return 0
    members = bundles.sizes[bundles.sizes > 1]
    return 2 * int((members - 1 + 2).sum())


def _ends(bundles: Bundles) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Switch and ports of both ends of every bundle of two links or more, first member first."""
    wiring = bundles.wiring
    for link, size in enumerate(bundles.sizes.tolist()):
        if size < 2:
            continue
        for channel in (2 * link, 2 * link + 1):
            members = bundles.channels(channel)
            yield int(wiring.channel_source[members[0]]), tuple(int(wiring.out_port[c]) for c in members)
