"""The table of keys by engine: what it says of each key is what becomes of a scenario with that key."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.base.errors import InputError
from testbed.planning import make_plan
from testbed.scenario import parse_scenario
from testbed.scenario.engine_table import NO, YES, engine_table
from testbed.scenario.engines import ENGINES, Simulator, VmOptions
from testbed.scenario.spec import LabSettings, Links

# A value of each key that is not its default, and what must stand beside it.
_VALUES: dict[str, dict[str, Any]] = {
    "links": {
        "rate": "100 Mbit/s", "host_rate": "2 Gbit/s", "queue_frames": 50, "mtu": 9000, "aggregate": True,
        "add": [["s1", "s2"]], "remove": [["s1", "s2"]], "rates": {"s1-s2": "100 Mbit/s"},
    },
    "lab": {
        "dilation": 50, "datapath": "userspace", "arp": "broadcast", "seed": 2, "telemetry": 500, "cpu_share": 0.1,
        "switch_daemons": 2, "fast_path": "off", "controller": "switch_tagged", "managers": 2,
        "host_access": "none", "tso": "off", "port_security": True,
    },
    "simulator": {
        "flow_control": "pause", "buffer": 100_000, "xoff": 50_000, "xon": 20_000, "shared": True, "delay": 2.0,
        "watchdog": 10, "cut_through": True, "duration": 100.0, "warm_up": 20.0,
    },
    "vm": {"virtual_time": True, "memory": 1024, "limit": 100.0, "shift": 1, "engine": "realtime"},
}  # fmt: skip
# Column of the table → what a scenario says for it.
_COLUMNS: dict[str, dict[str, Any]] = {
    **{name: {"engine": name} for name in ENGINES},
    "vm with vm.engine: realtime": {"engine": "vm", "vm": {"engine": "realtime"}},
}


def _told() -> dict[str, dict[str, str]]:
    """What the table says: key → engine → cell."""
    head, _, *rows = engine_table().splitlines()
    assert [cell.strip().replace("`", "") for cell in head.strip("|").split("|")] == ["key", *_COLUMNS]
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        keys, *cells = (part.strip() for part in row.strip("|").split("|"))
        found |= {key.strip("` "): dict(zip(_COLUMNS, cells, strict=True)) for key in keys.split(", ")}
    return found


def _refusals(blocks: dict[str, object]) -> str:
    try:
        make_plan(parse_scenario(yaml.safe_dump({"topology": {"kind": "mesh", "sizes": [2]}, **blocks}), "test"))
    except InputError as error:
        return str(error)
    return ""


def test_every_key_has_a_value_here() -> None:
    for block, kind in (("links", Links), ("lab", LabSettings), ("simulator", Simulator), ("vm", VmOptions)):
        assert {part.name for part in dataclasses.fields(kind)} == set(_VALUES[block])


@pytest.mark.parametrize("engine", _COLUMNS)
@pytest.mark.parametrize("key", [f"{block}.{name}" for block, keys in _VALUES.items() for name in keys])
def test_a_key_is_refused_where_the_table_says_so(engine: str, key: str) -> None:
    block, _, name = key.partition(".")
    blocks = {**_COLUMNS[engine]}
    blocks[block] = {**blocks.get(block, {}), name: _VALUES[block][name]}
    refused = re.search(rf"^test: {key}: is for (engine|vm\.engine): ", _refusals(blocks), re.MULTILINE) is not None
    told = _told()[key][engine]
    if "`" not in told:
        assert told == (NO if refused else YES)


def test_a_value_is_refused_where_the_table_names_others() -> None:
    told = {engine: cell for engine, cell in _told()["lab.controller"].items() if "`" in cell}
    assert told == {"realtime": "`segment_manager`", "vm with vm.engine: realtime": "`segment_manager`"}
    for value in ("switch_tagged", "learning", "segment_manager"):
        said = _refusals({"engine": "realtime", "lab": {"controller": value}})
        assert (f'test: lab.controller: "{value}" is for engine: ovs or vm only' in said) == (
            value != "segment_manager"
        )


@pytest.mark.parametrize(
    ("inside", "blocks", "said"),
    [
        ("ovs", {"simulator": {"xon": 9}}, "simulator.xon: is for vm.engine: realtime only, not ovs"),
        ("ovs", {"simulator": {"duration": 9}}, "simulator.duration: is for engine: simulate only, not vm"),
        ("ovs", {"links": {"mtu": 9000}}, "links.mtu: is for vm.engine: realtime only, not ovs"),
        ("realtime", {"lab": {"datapath": "kernel"}}, "lab.datapath: is for vm.engine: ovs only, not realtime"),
        ("realtime", {"simulator": {"duration": 9}}, "simulator.duration: is for engine: simulate only, not vm"),
        ("realtime", {"lab": {"controller": "learning"}}, '"learning" is for vm.engine: ovs only, not realtime; use'),
    ],
)  # fmt: skip
def test_a_refusal_names_what_carries_frames_in_the_machine(inside: str, blocks: dict[str, object], said: str) -> None:
    assert said in _refusals({"engine": "vm", "vm": {"engine": inside}, **blocks})


@pytest.mark.parametrize("engine", _COLUMNS)
@pytest.mark.parametrize(("row", "load", "lab"), [
    ("failures", {"kind": "probe", "failures": ["at 1s: down s1-s2", "at 2s: up s1-s2"]},
     {"controller": "segment_manager"}),
    ("timeline",
     {"kind": "iperf3", "protocol": "udp", "timeline": [{"at": "2 s", "link": "s1-s2", "rate": "100M"}]}, {}),
])  # fmt: skip
def test_events_are_refused_where_the_table_says_so(engine: str, row: str, load: object, lab: object) -> None:
    (line,) = (line for line in engine_table().splitlines() if f"`{row}`" in line)
    cells = dict(zip(_COLUMNS, (part.strip() for part in line.strip("|").split("|")[1:]), strict=True))
    told = _refusals({**_COLUMNS[engine], "workloads": [load], "lab": lab})
    assert cells[engine] == (NO if f"workloads.0.{row}: " in told else YES), told


def test_the_page_has_the_table() -> None:
    assert engine_table() in Path("docs/engines.md").read_text(encoding="utf-8")
