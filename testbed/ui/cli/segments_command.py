"""Command that shows segments, and what changes of a fabric take: segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from testbed.base.errors import EXIT_PASS, InputError, Problem
from testbed.ui.cli.app import FORMAT, SCENARIO, SETTINGS, app
from testbed.ui.cli.output import Format, print_json, print_lines, show_progress

if TYPE_CHECKING:
    from testbed.base.model import Topology
    from testbed.fabric.routing.segment_tables import SegmentHop
    from testbed.planning.failover.events import Change

_PLACE = "--change"


@app.command(
    epilog='Examples: testbed segments sr-irregular16\ntestbed segments sr-irregular16 --change "down s3-s7" '
    '--change "kill s5" --change "start s5" --format json'
)
def segments(
    name: SCENARIO,
    settings: SETTINGS = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--change", help='"down s3-s7", "up s3-s7", "kill s5" or "start s5"; repeatable, in this order'),
    ] = None,
    form: FORMAT = Format.text,
) -> None:
    """Show the segments of segment-based routing, and the cost of changes: local repair and full recomputation.

    Nothing is built. The cost of a change is counted in switches, and in entries by ingress port and destination.
    """
    from testbed.fabric.routing.segment_tables import first_step
    from testbed.fabric.topologies import TOPOLOGIES
    from testbed.scenario import find_scenario, load_scenario

    with show_progress("finding segments"):
        scenario = load_scenario(find_scenario(name), settings or ())
        topology = TOPOLOGIES[scenario.topology_kind].build(scenario.topology)
        if topology.link_count == 0:
            raise InputError.one("topology.kind", "has no link between switches, so there are no segments")
        events = _changes(topology, change or [])
        first = first_step(topology, 0)
        steps = _steps(topology, first, events)
    shown = [_segment(topology, segment.channels, segment.prohibited) for segment in first.found.segments]
    rows = [_as_object(topology, made, step) for made, step in zip(events, steps, strict=True)]
    if form is Format.json:
        print_json({"scenario": scenario.name, "segments": shown, "changes": rows})
    else:
        for number, segment in enumerate(shown, 1):
            print_lines(f"{number}. {segment['way']}, no {' '.join(segment['prohibited'])}")
        for row in rows:
            print_lines(
                f"{row['change']}: {row['segments_stay']} of {row['segments']} segments stay; {row['entries']} entries "
                f"at {row['switches']} switches, anew {row['entries_anew']} at {row['switches_anew']}; fullest channel "
                f"{row['max_channel_load']} paths, anew {row['max_channel_load_anew']}"
            )
    raise typer.Exit(EXIT_PASS)


def _changes(topology: Topology, texts: list[str]) -> list[Change]:
    """The changes in numbers.

    Raises:
        InputError: all that is wrong with them.
    """
    from testbed.planning.failover.events import changes_of
    from testbed.scenario.workloads.timeline import FAILURES, parse_event

    events, problems = [], []
    for number, text in enumerate(texts):
        try:
            event = parse_event(f"at 0s: {text}")
        except ValueError as error:
            problems.append(Problem(f"{_PLACE}.{number}", str(error)))
            continue
        if event.action not in FAILURES:
            problems.append(Problem(f"{_PLACE}.{number}", f'should be {", ".join(FAILURES)}, not "{event.action}"'))
        events.append(event)
    if problems:
        raise InputError(problems)
    found, wrong = changes_of(topology, events, _PLACE)
    wrong += [
        Problem(
            f"{_PLACE}.{number}",
            f"{'ports of hosts are' if made.hosts else 'the manager is'} in no segment; name links and switches",
        )
        for number, made in enumerate(found)
        if made.hosts or made.manager
    ]
    if wrong:
        raise InputError(wrong)
    return found


def _steps(topology: Topology, first: SegmentHop, events: list[Change]) -> list[SegmentHop]:
    """What comes of each change, after all before it."""
    from testbed.fabric.routing.segment_tables import next_step
    from testbed.planning.failover.failure_effects import failed_after

    steps: list[SegmentHop] = []
    last = first
    for number in range(len(events)):
        alive = ~failed_after(topology, events[: number + 1]).links
        if not alive.any():
            raise InputError.one(f"{_PLACE}.{number}", "leaves no link between switches, so no segment either")
        last = next_step(topology, last, alive)
        steps.append(last)
    return steps


def _as_object(topology: Topology, made: Change, step: SegmentHop) -> dict[str, object]:
    return {
        "change": made.event.what,
        "segments": len(step.found.segments),
        "segments_stay": step.found.stayed,
        "switches": step.switches,
        "entries": step.entries,
        "switches_anew": step.anew_switches,
        "entries_anew": step.anew_entries,
        "max_channel_load": int(step.tables.channel_load(topology).max()),
        "max_channel_load_anew": int(step.anew.channel_load(topology).max()),
    }


class _Segment(TypedDict):
    way: str
    prohibited: list[str]


def _segment(topology: Topology, channels: tuple[int, ...], prohibited: tuple[tuple[int, int], ...]) -> _Segment:
    ways = [topology.switch_name(int(topology.channel_source[channels[0]]))]
    ways += [topology.switch_name(int(topology.channel_target[channel])) for channel in channels]
    turns = [
        f"{topology.channel_name(before)}→{topology.switch_name(int(topology.channel_target[after]))}"
        for before, after in prohibited
    ]
    return {"way": "–".join(ways), "prohibited": turns}
