"""Kinds of changes of what a certificate says, of cables and hosts, and of what changes nothing; see *_kinds.py."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

from benchmarks.fuzz_certificate_plans import Base

Changed = tuple[Any, Any]
Kind = Callable[[Base, Random], Changed | None]


def _of_walk(edit: Callable[[list[str], Random], list[str]]) -> Kind:
    """One walk with other ports."""

    def change(base: Base, draw: Random) -> Changed | None:
        if not base.used:
            return None
        a, b = draw.choice(base.used)
        rows = list(base.certificate["walks"])
        rows[a] = list(rows[a])
        rows[a][b] = ".".join(edit(rows[a][b].split("."), draw))
        return base.plan, {**base.certificate, "walks": rows}

    return change


def _of_walks(edit: Callable[[Base, list[list[str]], Random], object]) -> Kind:
    """The table of walks, changed in place."""

    def change(base: Base, draw: Random) -> Changed | None:
        rows = [list(row) for row in base.certificate["walks"]]
        edit(base, rows, draw)
        return base.plan, {**base.certificate, "walks": rows}

    return change


def _swap_walks(base: Base, rows: list[list[str]], draw: Random) -> None:
    (a, b), (c, d) = draw.choice(base.used), draw.choice(base.used)
    rows[a][b], rows[c][d] = rows[c][d], rows[a][b]


def _of_order(edit: Callable[[list[Any], Random], list[Any]]) -> Kind:
    """The order of channels, by what makes another of it."""

    def change(base: Base, draw: Random) -> Changed | None:
        order = [list(channel) for channel in base.certificate["order"]]
        return (base.plan, {**base.certificate, "order": edit(order, draw)}) if order else None

    return change


def _shuffled(order: list[Any], draw: Random) -> list[Any]:
    return draw.sample(order, len(order))


def _without_one(order: list[Any], draw: Random) -> list[Any]:
    del order[draw.randrange(len(order))]
    return order


def _one_layer_up(order: list[Any], draw: Random) -> list[Any]:
    draw.choice(order)[2] += 1
    return order


def _moved_to_the_front(order: list[Any], draw: Random) -> list[Any]:
    order.insert(0, order.pop(draw.randrange(len(order))))
    return order


def _of_column(name: str, edit: Callable[[Base, list[Any], Random], object]) -> Kind:
    """A column of cables or hosts, changed in place."""

    def change(base: Base, draw: Random) -> Changed | None:
        values = base.column(name)
        if len(values) < 2:
            return None
        edit(base, values, draw)
        return base.with_topology(**{name: values})

    return change


def _swap(_base: Base, values: list[Any], draw: Random) -> None:
    a, b = draw.sample(range(len(values)), 2)
    values[a], values[b] = values[b], values[a]


def _one_is(value: Any) -> Callable[[Base, list[Any], Random], None]:
    def put(_base: Base, values: list[Any], draw: Random) -> None:
        values[draw.randrange(len(values))] = value

    return put


def _as(kind: Callable[[Any], Any]) -> Callable[[Base, list[Any], Random], None]:
    def put(_base: Base, values: list[Any], draw: Random) -> None:
        place = draw.randrange(len(values))
        values[place] = kind(values[place])

    return put


def _names_of_fewer_hosts(base: Base, draw: Random) -> Changed | None:
    """Names of fewer hosts than there are, and a lie of the last one's walks."""
    changed, certificate = base.with_topology(host_names=["h1"])
    rows = copy.deepcopy(certificate["walks"])
    rows[0][-1] = "77"
    return changed, {**certificate, "walks": rows}


def _without_hosts(base: Base, draw: Random) -> Changed | None:
    plan, certificate = base.with_topology(host_switch=[], host_port=[])
    return plan, {**certificate, "walks": []}


def _with_rules_of(base: Base, draw: Random) -> Changed | None:
    """Rules of two switches in each other's place."""
    if len(base.ports) < 2:
        return None
    a, b = draw.sample(range(len(base.ports)), 2)
    rules = list(base.plan["rules"])
    rules[a], rules[b] = rules[b], rules[a]
    return {**base.plan, "rules": rules}, base.certificate


def _without_rules(base: Base, draw: Random) -> Changed | None:
    return base.with_rules(draw.randrange(len(base.ports)), [])


def _fewer_switches(base: Base, draw: Random) -> Changed | None:
    return {**base.plan, "rules": base.plan["rules"][:-1], "groups": base.plan["groups"][:-1]}, base.certificate


def _other_digest(base: Base, draw: Random) -> Changed | None:
    return base.plan, {**base.certificate, "digest": "0" * 16}


CLAIMS: dict[str, Kind] = {
    "a walk by another port": _of_walk(lambda ports, draw: [*ports[:-1], str(int(ports[-1]) + 1)]),
    "a walk that ends early": _of_walk(lambda ports, draw: ports[:-1]),
    "a walk that goes on": _of_walk(lambda ports, draw: [*ports, ports[-1]]),
    "a walk turned round": _of_walk(lambda ports, draw: [*ports[::-1], "1"]),
    "a walk with a zero before": _of_walk(lambda ports, draw: ["0" + ports[0], *ports[1:]]),
    "a walk with a blank": _of_walk(lambda ports, draw: [" " + ports[0], *ports[1:]]),
    "no walk": _of_walk(lambda ports, draw: []),
    "two walks in each other's place": _of_walks(_swap_walks),
    "a walk to itself": _of_walks(lambda base, rows, draw: rows[0].__setitem__(0, "1")),
    "walks of a host less": _of_walks(lambda base, rows, draw: rows.pop()),
    "a walk less": _of_walks(lambda base, rows, draw: rows[0].pop()),
    "the order turned round": _of_order(lambda order, draw: order[::-1]),
    "the order shuffled": _of_order(_shuffled),
    "a channel moved to the front": _of_order(_moved_to_the_front),
    "a channel that the order lacks": _of_order(_without_one),
    "a channel twice": _of_order(lambda order, draw: [*order, draw.choice(order)]),
    "a channel of another layer": _of_order(_one_layer_up),
    "channels as text": _of_order(lambda order, draw: [[str(part) for part in one] for one in order]),
    "no order": _of_order(lambda order, draw: []),
    "another plan's digest": _other_digest,
    "cables to other switches": _of_column("channel_target", _swap),
    "cables in other ports": _of_column("out_port", _swap),
    "two cables in a port": _of_column("out_port", _one_is(1)),
    "a cable out of range": _of_column("out_port", _one_is(70000)),
    "a cable from nowhere": _of_column("channel_source", _one_is(-1)),
    "a cable of half a number": _of_column("out_port", _as(lambda value: value + 0.5)),
    "a cable of a text": _of_column("out_port", _as(str)),
    "a channel less": _of_column("channel_source", lambda base, values, draw: values.pop()),
    "hosts at each other's ports": _of_column("host_switch", _swap),
    "a host behind the last switch": _of_column("host_switch", lambda base, values, draw: values.__setitem__(0, -1)),
    "a host at another port": _of_column("host_port", _one_is(78)),
    "names of fewer hosts": _names_of_fewer_hosts,
    "no hosts": _without_hosts,
    "rules of other switches": _with_rules_of,
    "a switch without rules": _without_rules,
    "rules of fewer switches": _fewer_switches,
}


# ----------------------------------------------------------------------------------------------- what changes nothing


def _in_another_order(base: Base, draw: Random) -> Changed | None:
    switch = draw.randrange(len(base.ports))
    rules = base.plan["rules"][switch]
    return base.with_rules(switch, draw.sample(rules, len(rules)))


def _for_nobody(base: Base, draw: Random) -> Changed | None:
    switch = draw.randrange(len(base.ports))
    rule = "table=1,priority=60000,dl_dst=06:00:00:00:00:01,actions=drop"
    return base.with_rules(switch, [*base.plan["rules"][switch], rule])


def _fields_in_another_order(base: Base, draw: Random) -> Changed | None:
    """Fields of one rule's match, the table and the priority included."""
    switch, number, _ = draw.choice(base.met)
    rules = list(base.plan["rules"][switch])
    match, _, actions = rules[number].partition(",actions=")
    parts = match.split(",")
    rules[number] = f"{','.join(draw.sample(parts, len(parts)))},actions={actions}"
    return base.with_rules(switch, rules)


def _through_an_empty_table(base: Base, draw: Random) -> Changed | None:
    switch, number, _ = draw.choice(base.met)
    rules = list(base.plan["rules"][switch])
    rules[number] = rules[number].replace("actions=", "actions=resubmit(,9),", 1)
    return base.with_rules(switch, rules) if "drop" not in rules[number] else None


def _tables_by_other_numbers(base: Base, draw: Random) -> Changed | None:
    """The second table is the fifth, and the third the seventh."""
    switch = draw.randrange(len(base.ports))
    rules = []
    for rule in base.plan["rules"][switch]:
        text = rule
        for old, new in ((2, 7), (1, 5)):
            for form in ("table={},", "goto_table:{}", "resubmit(,{})"):
                before, after = form.format(old), form.format(new)
                text = text.replace(before, after) if form[-1] in ",)" else _at_the_end(text, before, after)
        rules.append(text)
    return base.with_rules(switch, rules)


def _at_the_end(text: str, before: str, after: str) -> str:
    return text[: -len(before)] + after if text.endswith(before) else text


def _more_channels(base: Base, draw: Random) -> Changed | None:
    return base.plan, {**base.certificate, "order": [*base.certificate["order"], [0, 1, 7]]}


UNCHANGED: dict[str, Kind] = {
    "nothing changed": lambda base, draw: (base.plan, base.certificate),
    "rules in another order": _in_another_order,
    "a rule for nobody": _for_nobody,
    "fields in another order": _fields_in_another_order,
    "a table that is empty on the way": _through_an_empty_table,
    "tables by other numbers": _tables_by_other_numbers,
    "a channel that nobody takes": _more_channels,
}
