"""What this machine sustains: as `testbed doctor --calibrate` measured it, and what its processors leave to hosts."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from testbed.base.errors import CapabilityError
from testbed.base.files import make_folder, read_text, write_whole
from testbed.base.limits import parse_json
from testbed.base.version import __version__
from testbed.engines.lab.hosts.host_shares import most_share, processors, share_of
from testbed.planning import Plan
from testbed.planning.rates import all_sent, demand
from testbed.scenario.spec import largest_dilation

SCHEMA_VERSION = 1
# How many times more than the loads need a lab must manage, so that a busier moment costs no figure.
MARGIN = 1.25
# The same with TCP and MPI jobs: what they send comes in bursts, and hosts have more work with it than with datagrams.
_BURST_MARGIN = 1.5
# Without a calibration: what two cores without the kernel datapath sustained. Only where a search begins depends on it.
_FRAME_HOPS = 50_000.0


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was measured."""

    machine: Mapping[str, Any]  # what it holds for; see machine()
    frame_hops: float  # frames a second times switches at which all was as predicted
    frame_hops_failed: float | None  # the next step up, at which it was not; None = the search ended before one
    # laboratory seconds by which a switch more delays a frame, one way: `median`, `least`, `most`
    hop_seconds: Mapping[str, float]
    measured: float  # when; seconds since the epoch


def file() -> Path:
    """Where the calibration is stored: `calibration.json` in `$XDG_CACHE_HOME/testbed`, else in `~/.cache/testbed`."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "testbed" / "calibration.json"


def machine(datapath: str, open_vswitch: str) -> dict[str, object]:
    """What a calibration depends on."""
    return {
        "processors": processors(),
        "processor": processor_name(),
        "kernel": platform.release(),
        "datapath": datapath,
        "open_vswitch": open_vswitch,
        "testbed": __version__,
    }


def write(found: Calibration) -> Path:
    """Store a calibration and return its file.

    Raises:
        CapabilityError: the file cannot be written.
    """
    target = file()
    try:
        make_folder(target.parent)
        text = json.dumps({"schema_version": SCHEMA_VERSION, **asdict(found)}, indent=1) + "\n"
        write_whole(target, text.encode())
    except OSError as error:
        raise CapabilityError(
            f"{target} cannot be written ({error.strerror}), so the calibration is not kept; set XDG_CACHE_HOME"
        ) from error
    return target


def read() -> Calibration | None:
    """The calibration of a machine like this one, or None.

    Datapath and Open vSwitch, which only a lab knows, are not compared: it is only where a search begins.
    """
    try:
        raw = parse_json(read_text(file()))
        if raw.pop("schema_version") != SCHEMA_VERSION:
            return None
        found = Calibration(**raw)
        here = machine(found.machine["datapath"], found.machine["open_vswitch"])
        return found if found.machine == here and found.frame_hops > 0 else None
    except (OSError, ValueError, TypeError, LookupError):
        return None  # there is none, or another version's


def processor_name() -> str:
    """What the kernel calls this machine's processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model", "cpu"):
            return value.strip()
    return platform.machine()


def frame_margin(plan: Plan) -> float:
    """How many times the frames of a scenario's greatest load its lab must manage before the load is run."""
    return _BURST_MARGIN if any(sent.bursts or sent.protocol == "tcp" for sent in all_sent(plan)) else MARGIN


def first_guess(plan: Plan) -> tuple[float, str]:
    """A dilation that the machine should manage, for a scenario that leaves the choice to it.

    Returns:
        The dilation, and what it was taken from: `calibration` or `default`.
    """
    found = read()
    sustained = found.frame_hops if found else _FRAME_HOPS
    guess = max(least_dilation(plan), frame_margin(plan) * demand(plan) / sustained)
    return min(guess, largest_dilation(plan.scenario.links, plan.scenario.lab)), "calibration" if found else "default"


def least_dilation(plan: Plan, most: float | None = None) -> float:
    """Smallest dilation that may be chosen for a scenario; above 1 where hosts' shares follow from it.

    `most`: largest share of a host, see most_share(); None = that of this machine, if it has all hosts.
    """
    if plan.scenario.lab.cpu_share != "auto":
        return 1.0
    return max(1.0, 1 / (most_share(plan.topology.host_count) if most is None else most))


def require_shares(plan: Plan) -> None:
    """Refuse shares that all hosts together could not get without starving the switches.

    Raises:
        CapabilityError: with what would be possible on this machine.
    """
    refused = share_refused(plan, plan.topology.host_count, processors())
    if refused:
        raise CapabilityError(f"{plan.scenario.source}: lab.cpu_share: {refused}")


def share_refused(plan: Plan, hosts: int, count: int) -> str:
    """Why a machine of so many processors cannot give so many hosts their shares; empty where it can."""
    lab = plan.scenario.lab
    most = share_of(count, hosts)
    if lab.dilation == "auto" and lab.cpu_share == "auto":
        share = 1 / largest_dilation(plan.scenario.links, lab)
        remedy = f"lab.dilation can be no more than {1 / share:.4g} here; use fewer hosts"
    else:
        wanted = lab.processors_a_host
        if wanted is None:
            return ""
        share = wanted
        remedy = f"use lab.dilation {1 / most:.4g} or more" if lab.cpu_share == "auto" else f"use {most:.4g} or less"
    if share <= most:
        return ""
    return (
        f"{hosts} hosts with {share:.4g} of a processor each would take {hosts * share:.4g} of this machine's {count}, "
        f"and half of them must be left for the switches; {remedy}"
    )
