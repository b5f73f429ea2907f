"""Statements of Junos on the spanning tree protocols: `protocols rstp`, `stp`, `mstp` and `vstp`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from testbed.devices.read_lines import SwitchLines, vlans_of
from testbed.devices.stp_keywords import add_instance, number_of
from testbed.devices.stp_settings import ANY


def read_junos_tree(
    switch: SwitchLines, ports: set[str], words: Sequence[str], ports_called: Callable[[str], Sequence[str]]
) -> bool:
    """Carry out what follows `protocols rstp` and the like, and say whether it is understood.

    Args:
        switch: that it is of.
        ports: names of ports on which the protocol runs, to which those of the line are added; `all` for all.
        words: of the line.
        ports_called: ports of a name, which is that of a port or of an interface range.

    Raises:
        LineError: a number or a list of VLANs is none.
    """
    tree = switch.tree
    match list(words):
        case ["disable"]:
            switch.stp = False
        case ["bridge-priority", priority]:
            _set_priority(switch, [ANY], priority)
        case ["vlan", vlans, "bridge-priority", priority]:
            _set_priority(switch, _vlans_of(vlans), priority)
        case ["msti", number, "bridge-priority", priority]:
            _set_priority(switch, [number_of(number, 64)], priority)
        case ["msti", number, "vlan", vlans]:
            add_instance(switch, number_of(number, 64), vlans_of(vlans))
        case ["configuration-name", name]:
            switch.tree = replace(tree, region=(name.strip('"'), tree.region[1]))
        case ["revision-level", number]:
            switch.tree = replace(tree, region=(tree.region[0], number_of(number, 65535)))
        case ["interface", name, *said] | ["vlan", "all", "interface", name, *said]:
            return _read_port(switch, ports, name, [ANY], said, ports_called)
        case [("vlan" | "msti"), trees, "interface", name, *said]:
            return _read_port(switch, ports, name, list(vlans_of(trees)), said, ports_called)
        case ["bpdu-block-on-edge"]:
            switch.tree = replace(tree, guards_edges=True)
        case ["vlan", _] | [("hello-time" | "max-age" | "forward-delay" | "max-hops" | "traceoptions"), *_]:
            pass
        case _:
            return False
    return True


def _vlans_of(text: str) -> list[int]:
    return [ANY] if text == "all" else list(vlans_of(text))


def _set_priority(switch: SwitchLines, trees: Sequence[int], text: str) -> None:
    """`4k` is 4,096."""
    value = 1024 * number_of(text[:-1], 60) if text.endswith("k") else number_of(text, 61440)
    switch.tree = replace(switch.tree, priorities={**switch.tree.priorities, **dict.fromkeys(trees, value)})


def _read_port(
    switch: SwitchLines, ports: set[str], name: str, trees: Sequence[int], said: Sequence[str],
    ports_called: Callable[[str], Sequence[str]],
) -> bool:  # fmt: skip
    if name == "all":
        ports.add("all")
        return list(said) in ([], ["mode", "point-to-point"])
    return all(_read_setting(switch, ports, port, trees, said) for port in ports_called(name))


def _read_setting(switch: SwitchLines, ports: set[str], port: str, trees: Sequence[int], said: Sequence[str]) -> bool:
    ports.add(port)
    match list(said):
        case [] | ["mode", _]:
            pass
        case ["edge"]:
            switch.tree = switch.tree.with_port(port, edge=True)
        case ["no-root-port"]:
            switch.tree = switch.tree.with_port(port, guards_root=True)
        case ["disable"]:
            switch.tree = switch.tree.with_port(port, filters=True)
        case [("cost" | "priority") as what, value]:
            number = number_of(value)
            for one in trees:
                switch.tree = (
                    switch.tree.with_port(port, one, cost=number)
                    if what == "cost"
                    else switch.tree.with_port(port, one, priority=number)
                )
        case _:
            return False
    return True
