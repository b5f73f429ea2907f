"""What the parts of a fabric are asked for a question to the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from testbed.base.errors import LabError
from testbed.base.messages import Disturbance, LoadRequest
from testbed.engines.lab.control import requests as ask
from testbed.engines.machines.parts import Part

# To all alike: each answers for what it has.
_TO_ALL = (
    ask.GetFacts, ask.GetStatus, ask.SetRates, ask.CheckShaping, ask.GetLinks, ask.CountFrames, ask.DumpFlows,
    ask.DumpShortCuts, ask.DumpGroups, ask.ForgetFlows, ask.ReadLinks, ask.ReadPairs, ask.Reach, ask.WriteFile,
    ask.TakeFile,
)  # fmt: skip


def for_parts(request: ask.Request[Any], parts: Sequence[Part], gate: str = "") -> list[ask.Request[Any]]:
    """What each part is asked.

    Args:
        request: to the whole.
        parts: of the fabric.
        gate: of a load, where its parts wait for each other; see LoadRequest.

    Raises:
        LabError: a fabric over several machines cannot do that.
    """
    if isinstance(request, _TO_ALL):
        return [request] * len(parts)
    if isinstance(request, ask.Trace):
        return [
            ask.Trace(tuple(frame for frame in request.frames if frame[0] in part.order.switches)) for part in parts
        ]
    if isinstance(request, ask.ShowFolder):
        wanted = [[host.name for host in part.order.hosts] for part in parts]
        if request.hosts is not None:
            wanted = [[name for name in its if name in request.hosts] for its in wanted]
        return [replace(request, hosts=tuple(its)) for its in wanted]
    if isinstance(request, ask.SetSpeeds):
        speeds = request.speeds
        return [
            ask.SetSpeeds({here: speeds[link] for here, link in enumerate(part.links) if link in speeds})
            for part in parts
        ]
    if isinstance(request, ask.RunLoad):
        return [ask.RunLoad(load) for load in loads(request.load, parts, gate)]
    if isinstance(request, ask.Disturb):
        return [ask.Disturb(its) for its in shares_of(request.disturbance, parts)]
    raise LabError(f"a fabric over several machines cannot carry out: {ask.OP[type(request)]}")


def loads(load: LoadRequest, parts: Sequence[Part], gate: str) -> list[LoadRequest]:
    """The share of each part in a load: the processes of its hosts, those that are to run beside these, and its events.

    Every part has all events, be there nothing in them for it.
    """
    part_of = {host.name: number for number, part in enumerate(parts) for host in part.order.hosts}
    shares: list[list[Any]] = [[] for _ in parts]
    for process in load.processes:
        host = process.host or process.beside
        shares[0 if host is None else part_of[host]].append(process)
    events = [shares_of(event, parts) for event in load.timeline]
    asking = {number for number, share in enumerate(shares) if any(one.server_port is None for one in share)}
    return [
        replace(
            load,
            processes=tuple(share),
            timeline=tuple(event[number] for event in events),
            gate=gate,
            clients_elsewhere=bool(asking - {number}),
        )
        for number, share in enumerate(shares)
    ]


def shares_of(what: Disturbance, parts: Sequence[Part]) -> list[Disturbance]:
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


def concerns(what: Disturbance) -> bool:
    """Whether there is anything in it."""
    return any((what.channels, what.hosts, what.switches, what.links, what.pausing, what.far, what.manager))


def _local_indices(numbers: Sequence[int], mine: Sequence[int]) -> tuple[int, ...]:
    """Those numbers of the whole that a part has, in its own."""
    return tuple(mine.index(number) for number in numbers if number in mine)
