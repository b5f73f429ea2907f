"""The engines that a scenario can name, and what a scenario says to each of them alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le
from pydantic import BeforeValidator, WithJsonSchema

from testbed.base import old_names
from testbed.base.errors import Problem, did_you_mean
from testbed.scenario.parameter_models import format_value


@dataclass(frozen=True, slots=True)
class Simulator:
    """The switches of the simulator's packet level, and of engine: realtime; see docs/simulator.md."""

    # `none` drops frames as the lab does, `pause` stops a whole link (802.3x), `pfc` one priority of it (802.1Qbb)
    flow_control: Literal["none", "pause", "pfc"] = "none"
    # bytes of memory for each port and priority; none = as much as links.queue_frames take without flow control, else
    # 65536
    buffer: Annotated[int, Ge(1), Le(1 << 30)] | None = None
    xoff: Annotated[int, Ge(1)] | None = None  # bytes at which a sender is paused; none = as late as loses no frame
    xon: Annotated[int, Ge(0)] | None = None  # bytes at which it may go on; none = half of xoff
    shared: bool = False  # whether the ports of a switch share their memory
    delay: Annotated[float, Ge(0), Le(1000)] = 1.0  # µs of cable and switch a hop
    # ms after which a switch drops what a pause holds back, as PFC watchdogs do; none = it waits for ever
    watchdog: Annotated[float, Ge(1), Le(60000)] | None = None
    cut_through: bool = False  # whether switches send a frame on when they have its head, and not all of it
    duration: Annotated[float, Gt(0), Le(60000)] = 200.0  # ms of each repeat, the warm-up included
    warm_up: Annotated[float, Ge(0), Le(60000)] = 50.0  # ms at the beginning that do not count


def _auto_or_bool(value: object) -> object:
    if isinstance(value, bool) or value == "auto":
        return value
    near = f".{did_you_mean(value, ['auto'])}" if isinstance(value, str) else ""
    raise ValueError(f"should be auto, true or false, not {format_value(value)}{near.rstrip('.')}")


@dataclass(frozen=True, slots=True)
class VmOptions:
    """The virtual machine; see docs/vm.md."""

    # whether its clock counts instructions, so that figures do not depend on this machine; `auto` = where KVM does not
    # boot
    virtual_time: Annotated[
        bool | Literal["auto"],
        BeforeValidator(_auto_or_bool),
        WithJsonSchema({"anyOf": [{"type": "boolean"}, {"const": "auto"}]}),
    ] = "auto"
    memory: Annotated[int, Ge(256)] = 2048  # MiB
    limit: Annotated[float, Ge(1)] = 7200.0  # s after which it is ended
    shift: Annotated[int, Ge(0), Le(10)] = 0  # in virtual time one instruction takes 2^shift ns
    engine: Literal["ovs", "realtime"] = "ovs"  # what carries frames in it: Open vSwitch, or modelled switches


@dataclass(frozen=True, slots=True)
class EngineName:
    """What a scenario can know of an engine."""

    summary: str  # one line for help and schema
    # block → its keys that mean nothing to this engine; no keys = none of them does
    unsupported: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # block → its keys that have a meaning with these values alone, the default included
    values: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    changes: bool = True  # whether links can change or fail while a load runs
    programs: bool = True  # whether hosts run real programs
    sees_files: bool = True  # whether these see files of this machine


# Rates of the simulator are real-world rates, so of a lab's settings it takes any dilation for what it is.
_OF_MACHINES = (
    "datapath", "arp", "telemetry", "cpu_share", "switch_daemons", "fast_path", "controller", "managers", "host_access",
    "tso", "port_security",
)  # fmt: skip
ENGINES: dict[str, EngineName] = {
    "ovs": EngineName("Open vSwitch on this machine", {"vm": (), "simulator": (), "links": ("mtu",)}),
    "vm": EngineName(
        "Open vSwitch, or modelled switches, in a virtual machine with Debian's kernel",
        {"simulator": (), "links": ("mtu",)},
        sees_files=False,
    ),
    "realtime": EngineName(
        "real hosts on modelled switches, at the pace of the clock",
        {
            "vm": (),
            "simulator": ("duration", "warm_up"),
            "lab": ("datapath", "switch_daemons", "fast_path", "managers", "port_security"),
        },
        {"lab": {"controller": ("none", "segment_manager")}},
    ),
    "simulate": EngineName(
        "the packet-level simulator",
        {
            "vm": (),
            "lab": _OF_MACHINES,
            "simulator": ("watchdog", "cut_through"),
            "links": ("aggregate", "rates", "mtu"),
        },
        changes=False,
        programs=False,
    ),
}
# What modelled switches in the virtual machine know, and see: see docs/vm.md.
MODEL_IN_VM = EngineName(
    "modelled switches in a virtual machine",
    {block: keys for block, keys in ENGINES["realtime"].unsupported.items() if block != "vm"},
    ENGINES["realtime"].values,
    sees_files=False,
)
# Those that are a lab on this machine, which a command can work in.
LABS = ("ovs", "realtime")


def engine_name(name: Any) -> Any:
    """The name of today for an engine; what never was one stays as it is."""
    return old_names.ENGINES.get(name, name) if isinstance(name, str) else name


def carrying(engine: str, vm: VmOptions) -> EngineName:
    """What carries a scenario's frames: its engine, or what is named for its virtual machine."""
    return MODEL_IN_VM if engine == "vm" and vm.engine == "realtime" else ENGINES[engine]


def list_unsupported_keys(engine: str, blocks: Mapping[str, Any]) -> list[Problem]:
    """Keys with another value than the default that the engine of a scenario would take no notice of.

    `blocks`: block → the dataclass that was made of it.
    """
    found, vm = [], blocks["vm"]
    taken = carrying(engine, vm)
    for block, keys in taken.unsupported.items():
        for part in dataclasses.fields(blocks[block]):
            if (not keys or part.name in keys) and getattr(blocks[block], part.name) != part.default:
                where = _say_where(engine, taken, block, part.name)
                found.append(Problem(f"{block}.{part.name}", f"is for {where}; take it out, or set that"))
    for block, limited in taken.values.items():
        for key, able in limited.items():
            value = getattr(blocks[block], key)
            if value not in able:
                where = _say_where(engine, taken, block, key, value)
                sentence = f'"{value}" is for {where}; use {" or ".join(able)}, or set that'
                found.append(Problem(f"{block}.{key}", sentence))
    if vm.shift and vm.virtual_time is not True and engine == "vm":
        found.append(Problem("vm.shift", "is for vm.virtual_time: true only; take it out, or set that"))
    return found


def _say_where(engine: str, taken: EngineName, block: str, key: str, value: object = None) -> str:
    """The engines that know a key, with a value if one is given, and that it is not the one of the scenario."""
    if taken is MODEL_IN_VM and supports_key(ENGINES["vm"], block, key, value):
        return "vm.engine: ovs only, not realtime"
    if engine == "vm" and taken is not MODEL_IN_VM and supports_key(MODEL_IN_VM, block, key, value):
        return "vm.engine: realtime only, not ovs"
    others = " or ".join(name for name, other in ENGINES.items() if supports_key(other, block, key, value))
    return f"engine: {others} only, not {engine}"


def supports_key(engine: EngineName, block: str, key: str, value: object = None) -> bool:
    """Whether a key of a block means anything to an engine, with a value if one is given."""
    keys = engine.unsupported.get(block)
    able = engine.values.get(block, {}).get(key)
    return (keys is None or bool(keys and key not in keys)) and (value is None or able is None or value in able)


def lab_problems(engine: str, source: str) -> list[Problem]:
    """What is wrong, if a scenario's engine is no lab on this machine that a command can work in."""
    if engine in LABS:
        return []
    able = " or ".join(LABS)
    sentence = f"is {engine}, and this command needs a lab on this machine; leave it out, or make it {able}"
    return [Problem(f"{source}: engine", sentence)]
