"""The shares of the parts of a fabric over several machines in a load, and in what happens to links and hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from testbed.base.messages import Disturbance, LoadRequest
from testbed.engines.lab.fabric_part import Part


def divide_load(load: LoadRequest, parts: Sequence[Part]) -> list[LoadRequest]:
    """The share of each part in a load: the processes of its hosts, those that are to run beside these, and its events.

    Every part has all events, be there nothing in them for it.
    """
    part_of = {host.name: number for number, part in enumerate(parts) for host in part.order.hosts}
    shares: list[list[Any]] = [[] for _ in parts]
    for process in load.processes:
        host = process.host or process.beside
        shares[0 if host is None else part_of[host]].append(process)
    events = [divide_disturbance(event, parts) for event in load.timeline]
    asking = {number for number, share in enumerate(shares) if any(one.server_port is None for one in share)}
    return [
        replace(
            load,
            processes=tuple(share),
            timeline=tuple(event[number] for event in events),
            clients_elsewhere=bool(asking - {number}),
        )
        for number, share in enumerate(shares)
    ]


def divide_disturbance(what: Disturbance, parts: Sequence[Part]) -> list[Disturbance]:
    """What happens in each part, in its own numbers; of a link that is cut either end follows the other one."""
    return [
        replace(
            what,
            channels=_local_indices(what.channels, part.channels),
            hosts=_local_indices(what.hosts, part.hosts),
            switches=_local_indices(what.switches, part.switches),
            links=tuple(replace(one, link=part.links.index(one.link)) for one in what.links if one.link in part.links),
            pausing=_local_indices(what.pausing, part.hosts),
            far=tuple(
                part.links.index(channel // 2)
                for channel in what.channels
                if channel not in part.channels and channel // 2 in part.links
            ),
            manager=what.manager and part.order.controller_here,
        )
        for part in parts
    ]


def has_effect(what: Disturbance) -> bool:
    """Whether there is anything in it."""
    return any((what.channels, what.hosts, what.switches, what.links, what.pausing, what.far, what.manager))


def _local_indices(numbers: Sequence[int], mine: Sequence[int]) -> tuple[int, ...]:
    """Those numbers of the whole that a part has, in its own."""
    return tuple(mine.index(number) for number in numbers if number in mine)
