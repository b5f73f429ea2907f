"""What a switch's rules do with frames for known hosts, each by one look-up: the entries of a fast path.

An entry says for an in-port, a tag and a destination by which port a frame leaves, and with which tag. It is there
only where the rules send every such frame by exactly that one port, whatever else is in it. All other frames are the
switch's own: group addresses, what is dropped, flooded, or hashed over a bundle. A switch with rules for which entries
cannot stand gets none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from testbed.base.model import Rule
from testbed.fabric.openflow.admission import MASKED
from testbed.fabric.openflow.flow_cache_entry import Entry
from testbed.fabric.openflow.oracle import Tag
from testbed.fabric.openflow.tables import EGRESS, FORWARDING, INGRESS, LEARN, UNTAGGED

_FIELDS = frozenset({"in_port", "dl_vlan", "dl_vlan_pcp", "dl_dst"})
_NO_TAG: Tag = (UNTAGGED, 0)
_DEEPEST = 8  # times that a frame passes the first table again; no pipeline here has more than two


class NotUnderstoodError(ValueError):
    """Rules do something for which entries cannot stand."""


class _Table:
    """The rules of one table of a switch.

    Those for addresses with a mask are left out: they are about group addresses, which no entry is for.
    """

    def __init__(self, rules: Iterable[Rule], fields: frozenset[str]) -> None:
        index: dict[tuple[int, tuple[str, ...]], dict[tuple[object, ...], Rule]] = defaultdict(dict)
        for rule in rules:
            if any(pair in MASKED for pair in rule.match):
                continue
            names = tuple(name for name, _ in rule.match)
            unknown = set(names) - fields
            if unknown:
                raise NotUnderstoodError(f"a rule of table {rule.table} matches {min(unknown)}")
            index[rule.priority, names][tuple(value for _, value in rule.match)] = rule
        self._index = sorted(index.items(), key=lambda item: -item[0][0])
        self.fields = {name for _, names in index for name in names}

    def find(self, **frame: object) -> Rule | None:
        """The rule that a frame matches.

        Raises:
            NotUnderstoodError: there are two of one priority; which of them counts, OpenFlow leaves open.
        """
        found: Rule | None = None
        for (priority, names), rules in self._index:
            if found is not None and priority < found.priority:
                break
            rule = rules.get(tuple(frame[name] for name in names))
            if rule is not None and found is not None:
                raise NotUnderstoodError(f"two rules of table {rule.table} with priority {priority} match one frame")
            found = rule or found
        return found


def entries(rules: Sequence[Rule], ports: Collection[int]) -> list[Entry]:
    """Return the entries that stand for the rules of one switch.

    Args:
        rules: all that it has.
        ports: numbers of its ports.

    Raises:
        NotUnderstoodError: says for which rule entries cannot stand.
    """
    by_table: dict[int, list[Rule]] = defaultdict(list)
    for rule in rules:
        by_table[rule.table].append(rule)
    ingress = _Table(by_table[INGRESS.number], _FIELDS - {"dl_dst"})
    forwarding = _Table(by_table[FORWARDING.number], _FIELDS)
    asked = {(name, value) for rule in rules for name, value in rule.match if (name, value) not in MASKED}
    destinations = sorted({str(value) for name, value in asked if name == "dl_dst"})
    priorities = sorted({0, *(int(value) for name, value in asked if name == "dl_vlan_pcp")})
    vlans = sorted({int(value) for name, value in asked if name == "dl_vlan"})
    tags = [_NO_TAG, *((vlan, priority) for vlan in vlans if vlan > 0 for priority in priorities)]
    ways: dict[tuple[int, Tag], list[tuple[str, int, Tag]]] = {}
    found = []
    for port in sorted(ports):
        for tag in tags:
            admitted = _admit(ingress, port, tag)
            if admitted is None:
                continue
            place = admitted if "in_port" in forwarding.fields else (0, admitted[1])
            if place not in ways:
                ways[place] = list(_ways(forwarding, *place, destinations))
            found += [
                Entry(port, tag, destination, out_port, out_tag)
                for destination, out_port, out_tag in ways[place]
                if out_port in ports and out_port != admitted[0]  # OpenFlow never sends back
            ]
    return found


def _admit(ingress: _Table, in_port: int, tag: Tag) -> tuple[int, Tag] | None:
    """In-port and tag with which a frame goes on to the forwarding table; None where it does not."""
    for _ in range(_DEEPEST):
        rule = ingress.find(in_port=in_port, dl_vlan=tag[0], dl_vlan_pcp=_priority(tag))
        if rule is None or not rule.actions:
            return None
        *changes, (last, table) = rule.actions
        for action, value in changes:
            if action == "set_in_port":
                in_port = value
            else:
                tag = _apply_action(tag, action, value)
        if (last, table) == ("goto_table", FORWARDING.number):
            return in_port, tag
        if (last, table) != ("resubmit", INGRESS.number):
            raise NotUnderstoodError(f"a rule of table {INGRESS.number} ends in {last}:{table}")
    raise NotUnderstoodError(f"a frame would pass table {INGRESS.number} more than {_DEEPEST} times")


def _ways(forwarding: _Table, in_port: int, tag: Tag, destinations: Iterable[str]) -> Iterable[tuple[str, int, Tag]]:
    """Destination, out-port and tag of frames that leave by one port."""
    for destination in destinations:
        rule = forwarding.find(in_port=in_port, dl_vlan=tag[0], dl_vlan_pcp=_priority(tag), dl_dst=destination)
        sent: list[tuple[int, Tag]] = []
        now, single = tag, True
        for action, value in rule.actions if rule is not None else ():
            if action == "output":
                sent.append((value, now))
            elif action in ("group", "set_bundle") or (action, value) == ("resubmit", EGRESS.number):
                single = False  # a hash decides
            else:
                now = _apply_action(now, action, value)
        if single and len(sent) == 1:
            yield destination, *sent[0]


def _priority(tag: Tag) -> int | None:
    return None if tag == _NO_TAG else tag[1]


def _apply_action(tag: Tag, action: str, value: int) -> Tag:
    if action == "push_vlan" and tag == _NO_TAG:
        return (value, 0)
    if action == "pop_vlan":
        return _NO_TAG
    if action == "set_pcp":
        return tag if tag == _NO_TAG else (tag[0], value)
    what = "learns addresses" if action in LEARN else f"has the action {action}:{value}"
    raise NotUnderstoodError(f"a rule {what}")
