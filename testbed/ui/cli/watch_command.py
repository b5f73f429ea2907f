"""`testbed watch`: links, queues and flows of a running lab, in the terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from testbed.base.errors import InputError, LabError
from testbed.base.untrusted_text import escape_line
from testbed.ui.cli.app import FORMAT, LAB, app
from testbed.ui.cli.interrupts import Interrupted
from testbed.ui.cli.output import Format, print_json, print_lines, results

if TYPE_CHECKING:
    from rich.console import RenderableType

    from testbed.base.messages import LinkReadings, PairReadings
    from testbed.engines.lab.control.client import LabClient
    from testbed.engines.lab.control.registry import Entry
    from testbed.planning import Plan

_SHORTEST = 0.1  # s between two readings
_BAR = 20  # columns
_LEAST_ROWS = 4  # of a table, however small the terminal
_OTHER_LINES = 8  # of heading, headers and the line below
_END_LIMIT = 5.0  # s within which a lab that no longer answers has ended


class Moment(NamedTuple):
    """What links and pairs of hosts have carried until a moment."""

    links: LinkReadings
    pairs: PairReadings


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of a link between two readings; rates of the real world."""

    direction: str  # such as s1→s2
    use: float  # share of the rate that it is shaped to
    rate: float  # bit/s on the wire
    queue_frames: int  # that wait now
    dropped: int  # frames that found the queue full


@dataclass(frozen=True, slots=True)
class FlowRate:
    """What a host sent to another one between two readings."""

    src: str
    dst: str
    rate: float  # bit/s of the real world, Ethernet headers included


@dataclass(frozen=True, slots=True)
class View:
    """What there is to see; the busiest first."""

    seconds: float  # between the readings, of the laboratory
    dilation: float
    links: tuple[Direction, ...]
    flows: tuple[FlowRate, ...]
    no_flows: str  # why flows are not known; else empty


@app.command(epilog="Examples:\ntestbed watch\ntestbed watch torus4x4 --every 0.5\ntestbed watch torus4x4 --json")
def watch(
    lab: LAB = None,
    every: Annotated[float, typer.Option("--every", help="sampling interval, s")] = 1.0,
    form: FORMAT = Format.text,
) -> None:
    """Show links, queues and flows of a running lab, live.

    The busiest first, until Ctrl-C or the lab's end; rates are of the real world. Without a terminal, and with --json,
    one sample over --every seconds.
    """
    from testbed.engines.connect_lab import connect
    from testbed.engines.lab.control import registry

    if not every >= _SHORTEST:
        raise InputError.one("--every", f"should be {_SHORTEST:g} s or more, not {every:g}")
    entry = registry.find(lab)
    client = connect(entry.namespaces)
    plan = client.plan()
    before = _look(client)
    try:
        if form is Format.json or not results.is_terminal:
            time.sleep(every)
            seen = view(plan, before, _look(client))
            if form is Format.json:
                print_json({"lab": entry.name, **asdict(seen)})
            else:
                results.print(picture(entry.name, client.status().doing, seen, None))
        else:
            _live(entry.name, client, plan, before, every)
    except Interrupted:
        return
    except LabError:
        if not _ends(entry):
            raise
        print_lines(f"the lab {entry.name} has ended")
    finally:
        client.close()


def _look(client: LabClient) -> Moment:
    return Moment(client.read_links(), client.read_pairs())


def _live(name: str, client: LabClient, plan: Plan, before: Moment, every: float) -> None:
    """Draw until something ends it."""
    from rich.live import Live

    with Live(console=results, auto_refresh=False, transient=True) as live:
        while True:
            time.sleep(every)
            now = _look(client)
            seen = view(plan, before, now)
            live.update(picture(name, client.status().doing, seen, results.height), refresh=True)
            before = now


def _ends(entry: Entry) -> bool:
    """Whether a lab that does not answer has ended, or is about to."""
    until = time.monotonic() + _END_LIMIT
    while entry.holds:
        if time.monotonic() > until:
            return False
        time.sleep(_SHORTEST)
    return True


def view(plan: Plan, before: Moment, after: Moment) -> View:
    """What happened between two readings of a plan's lab."""
    from testbed.base.ethernet import VLAN_TAG, wire_bits

    old, new, wiring = before.links, after.links, plan.wiring
    seconds, dilation = new.time - old.time, new.dilation
    links, tag = [], VLAN_TAG if plan.vlans.tagged_trunks else 0
    for channel in range(2 * wiring.link_count):
        frames = new.frames[channel] - old.frames[channel]
        wire = wire_bits(new.bytes[channel] - old.bytes[channel], frames, tag) / seconds
        links.append(
            Direction(
                wiring.channel_name(channel), wire / new.rates[channel], wire * dilation,
                new.waiting[channel], new.drops[channel] - old.drops[channel],
            )
        )  # fmt: skip
    sent = {(source, end): size for source, end, size in before.pairs.pairs}
    flows = [
        FlowRate(
            wiring.host_name(source),
            wiring.host_name(end),
            8 * (size - sent.get((source, end), 0)) / (after.pairs.time - before.pairs.time) * dilation,
        )
        for source, end, size in after.pairs.pairs
        if size > sent.get((source, end), 0)
    ]
    links.sort(key=lambda one: (-one.use, -one.queue_frames))
    flows.sort(key=lambda one: -one.rate)
    return View(seconds, dilation, tuple(links), tuple(flows), after.pairs.why_not)


def picture(name: str, doing: str, seen: View, height: int | None) -> RenderableType:
    """Tables of links and flows, as many rows as a terminal of a height has; None = all that carry something."""
    from rich.console import Group
    from rich.text import Text

    busy = [link for link in seen.links if link.use > 0 or link.queue_frames or link.dropped]
    rows = None if height is None else max(height - _OTHER_LINES, 2 * _LEAST_ROWS)
    for_flows = None if rows is None else min(len(seen.flows), rows // 2)
    for_links = None if rows is None or for_flows is None else rows - for_flows
    head = Text(escape_line(f"{name}: {doing}, dilation {seen.dilation:.4g}, rates of the real world"), style="bold")
    parts: list[RenderableType] = [head, _links(busy[:for_links])]
    parts.append(Text(_rest(len(busy), for_links, f"{len(seen.links)} directions of links", "busy"), style="dim"))
    if seen.no_flows:
        parts.append(Text(f"flows: {seen.no_flows}", style="dim"))
    else:
        parts += [_flows(seen.flows[:for_flows])] if seen.flows else []
        parts.append(Text(_rest(len(seen.flows), for_flows, "pairs of hosts", "with traffic"), style="dim"))
    return Group(*parts)


def _rest(count: int, shown: int | None, what: str, how: str) -> str:
    hidden = 0 if shown is None else max(0, count - shown)
    return f"{what}: {count} {how}" + (f", {hidden} more than fit here" if hidden else "")


def _links(links: Sequence[Direction]) -> RenderableType:
    from rich.bar import Bar
    from rich.table import Table

    from testbed.base.units import format_rate

    table = Table(box=None, pad_edge=False)
    for title, right in (
        ("link", False),
        ("used", False),
        ("", True),
        ("rate", True),
        ("queue", True),
        ("tail drops", True),
    ):
        table.add_column(title, justify="right" if right else "left", no_wrap=True)
    for one in links:
        color = "red" if one.dropped else "yellow" if one.queue_frames else "green"
        table.add_row(
            one.direction, Bar(1.0, 0.0, min(one.use, 1.0), width=_BAR, color=color), f"{100 * one.use:.0f} %",
            format_rate(one.rate), f"{one.queue_frames}", f"{one.dropped}",
        )  # fmt: skip
    return table


def _flows(flows: Sequence[FlowRate]) -> RenderableType:
    from rich.table import Table

    from testbed.base.units import format_rate

    table = Table(box=None, pad_edge=False)
    table.add_column("flow", no_wrap=True)
    table.add_column("rate", justify="right", no_wrap=True)
    for one in flows:
        table.add_row(f"{one.src}→{one.dst}", format_rate(one.rate))
    return table
