"""Connection matrices of htsim (`*.cm`)."""

from __future__ import annotations

import re

from testbed.base.errors import InputError, Problem
from testbed.fabric.schedules import Operation, Schedule, make_schedule
from testbed.fabric.topologies.any_graph import quote_name
from testbed.scenario.schedule_files.goal import MOST_OPERATIONS, MOST_RANKS

_COUNT = re.compile(r"(Nodes|Connections)\s+([0-9]{1,9})", re.IGNORECASE)
_LINE = re.compile(r"([0-9]{1,9})->([0-9]{1,9})((?:\s+\w+\s+[0-9]+)*)")
_NEVER = "lets a connection wait for another, which cannot be read; write the schedule as GOAL"
CONSTRUCTS = {
    "Nodes N": "read", "Connections N": "read", "A->B": "read", "size": "read", "id": "passed over",
    "start, the same of all": "passed over", "start, of several values": "refused",
    "trigger, send_done_trigger, recv_done_trigger": "refused", "prio": "passed over", "maxrate": "refused",
}  # fmt: skip


def read_htsim(text: str) -> Schedule:
    """Read connections, all of which begin at once.

    Raises:
        InputError: all that is wrong, each with its line.
    """
    counts: dict[str, int] = {}
    flows: list[tuple[str, int, int, dict[str, str]]] = []
    problems: list[Problem] = []
    for number, line in enumerate(text.splitlines(), 1):
        said, place = line.strip(), f"line {number}"
        if not said or said.startswith("#"):
            continue
        if match := _COUNT.fullmatch(said):
            counts[match[1].lower()] = int(match[2])
        elif match := _LINE.fullmatch(said):
            words = match[3].split()
            keys = dict(zip(words[::2], words[1::2], strict=True))
            flows.append((place, int(match[1]), int(match[2]), keys))
            problems += [
                Problem(
                    place, f"{quote_name(key)} {_NEVER}" if "trigger" in key else f"{quote_name(key)} cannot be read"
                )
                for key in keys
                if key not in ("id", "start", "size", "prio")
            ]
            if not 0 < int(keys.get("size", "0")[:16]) < 1 << 50:
                problems.append(Problem(place, "size should be bytes, above 0 and below 2^50"))
        else:
            problems.append(
                Problem(place, f"should be a line such as 7->5 start 0 size 2000000, not {quote_name(said)}")
            )
    starts = {keys.get("start", "0") for *_, keys in flows}
    if len(starts) > 1:
        problems.append(
            Problem("start", "has several values; here all connections begin at once, so give all the same")
        )
    nodes = counts.get("nodes", 0)
    if not 0 < nodes <= MOST_RANKS or len(flows) > MOST_OPERATIONS:
        problems.append(Problem("", f"should say Nodes, from 1 to {MOST_RANKS:,}"))
    if "connections" in counts and counts["connections"] != len(flows):
        problems.append(Problem("", f"says Connections {counts['connections']} and has {len(flows)}; was it cut off?"))
    problems += [
        Problem(place, f"there is no node {max(one, other)}; Nodes is {nodes}")
        for place, one, other, _ in flows
        if max(one, other) >= nodes
    ]
    if problems or not flows:
        raise InputError(problems[:20] or [Problem("", "has no connection")])
    ranks: list[list[Operation]] = [[] for _ in range(nodes)]
    for number, (place, one, other, keys) in enumerate(flows):
        ranks[one].append(Operation("send", place, int(keys["size"]), other, number))
        ranks[other].append(Operation("recv", place, int(keys["size"]), one, number))
    notes = [f"passed over: start {next(iter(starts))} of all"] if starts != {"0"} else []
    return make_schedule(ranks, notes)
