"""What was run and where, in words: settings, figures of the plan, machine, files."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from testbed.base.model import LocalPlan
from testbed.base.units import format_rate, format_seconds
from testbed.fabric.vlans.local_vlans import vlan_count
from testbed.planning import Plan
from testbed.planning.proof import DECLARED
from testbed.planning.summary import Multiplication, PlanFigures, summary
from testbed.results import Run
from testbed.results.read_run import LoadHead, load_heads
from testbed.results.samples import SAMPLES

_VIRTUAL_TIME = "virtual time"  # as the manifest says where a dilation comes from, if it was known without a trial
_RAW_SHOWN = 4  # files of a load's raw output beside its charts
VERDICTS = {
    "pass": ("✓", "The lab did what the scenario asks; the figures can be used."),
    "warn": ("!", "The figures can be used with caution; see the reasons."),
    "invalid": ("✕", "The lab could not do what the scenario asks; do not use the figures."),
    "fail": ("✕", "A load did not run to a result that can be trusted."),
}


def describe_verdict(verdict: str, reasons: Sequence[str]) -> tuple[str, str]:
    """Sign and meaning of a run's verdict."""
    if verdict == "pass" and any(DECLARED in reason for reason in reasons):
        return "✓", "The declared deadlock formed: the load came to a stop, as the scenario says that it will."
    return VERDICTS.get(verdict, ("?", "This run was not judged."))


@dataclass(frozen=True, slots=True)
class Fact:
    """A name, what it is, and a note that explains it."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A file of the result folder: its place in it, as text and as a link, and its size in bytes or -1."""

    name: str
    link: str
    size: int


def settings(run: Run) -> list[Fact]:
    """What the scenario asked for."""
    plan, scenario = run.plan, run.plan.scenario
    links = scenario.links
    edge = "" if links.edge_rate == links.rate else f", hosts' links {format_rate(links.edge_rate)}"
    edge += f", {len(links.rates)} with rates of their own" if links.rates else ""
    facts = [
        Fact("Topology", scenario.topology_kind, _parameters(scenario.topology)),
        Fact("Routing", scenario.routing_kind, _parameters(scenario.routing)),
        Fact("VLAN assignment", scenario.assignment_kind, _parameters(scenario.assignment)),
        Fact(
            "Links", format_rate(links.rate) + edge, f"queues of {links.queue_frames} frames{_describe_bundles(plan)}"
        ),
        _pace(run),
        *_virtual_machine(run),
    ]
    if scenario.switch_model:
        facts.append(Fact("Switch model", scenario.switch_model, "its limits hold"))
    facts.append(Fact("Plan digest", plan.digest, "equal digests are equal fabrics"))
    return facts


def key_figures(plan: Plan) -> list[Fact]:
    """Figures of the plan that people ask for first."""
    figures = summary(plan)
    proof = Fact("Deadlock", "free", "channel dependency graph has no cycle, proved")
    if not figures["deadlock_free"]:
        declared = ", as the scenario declares" if figures["expect"] == "deadlock" else ""
        proof = Fact("Deadlock", "possible", f"channel dependency graph has a cycle{declared}")
    return [
        Fact("Switches", f"{figures['switches']:,}"),
        Fact("Switch links", f"{figures['switch_links']:,}", _describe_unused(figures["unused_channels"])),
        Fact("Hosts", f"{figures['hosts']:,}"),
        Fact("VLANs", f"{figures['vlans']:,}", _vlans_note(plan, figures)),
        Fact("Rules", f"{figures['rules']:,}", "OpenFlow 1.3, all switches"),
        Fact("MAC entries", f"{figures['max_mac_entries']:,}", "most on one switch"),
        Fact(
            "Switches on a path",
            f"{figures['mean_switches_on_path']:.4g}",
            "mean over all N² ordered host pairs; a pair on one switch, and a host with itself, count 1",
        ),
        Fact("Max channel load", f"{figures['max_channel_load']:,}", "ordered host pairs on a link direction"),
        *_multiplication(figures["multiplication"]),
        proof,
    ]


def local_vlans(plan: Plan) -> tuple[str, list[tuple[int, str, str, int]]] | None:
    """The local VLANs of the switch that has most of them, or None where VLANs are not local.

    Returns:
        name of the switch, and for each VLAN its identifier, the ports whose PVID it is, its member ports, and the
        number of its forwarding entries.
    """
    topology, vlans = plan.topology, plan.vlans
    if not isinstance(vlans, LocalPlan) or vlans.kind != "renamed":
        return None
    switch = int(np.argmax(vlan_count(topology, vlans)))
    channels = np.arange(len(topology.channel_source))
    pvids: dict[int, list[int]] = {}
    for of_port, port in (
        (vlans.host_vlan, topology.host_port),
        (vlans.channel_vlan, topology.out_port[channels ^ 1]),
    ):
        for vlan, number in zip(of_port.tolist(), port.tolist(), strict=True):
            pvids.setdefault(vlan, []).append(number)
    entries = np.bincount(
        vlans.entry_vlan, weights=np.bincount(vlans.host_key)[vlans.entry_key], minlength=vlans.class_count
    )
    rows = []
    for vlan in np.flatnonzero(vlans.vlan_switch == switch).tolist():
        members = vlans.member_port[vlans.member_start[vlan] : vlans.member_start[vlan + 1]].tolist()
        rows.append((int(vlans.vlan_id[vlan]), _ports(sorted(pvids[vlan])), _ports(members), int(entries[vlan])))
    return topology.switch_name(switch), rows


def _ports(ports: list[int]) -> str:
    return ", ".join(map(str, ports))


def _describe_bundles(plan: Plan) -> str:
    if plan.bundles is None:
        return ", aggregated, but no two are parallel" if plan.scenario.links.aggregate else ""
    sizes = np.unique(plan.bundles.sizes).tolist()
    return f", aggregated into bundles of {' or '.join(map(str, sizes))}"


def _vlans_note(plan: Plan, figures: PlanFigures) -> str:
    if not isinstance(plan.vlans, LocalPlan):
        return _identifiers(figures["vlan_ids"])
    if plan.vlans.kind == "renamed":
        return f"most on one switch; {figures['vlans_total']:,} on all"
    return "the default one of each switch" if plan.vlans.kind == "static" else f"VLAN {plan.vlans.vlan_id[0]}"


def _multiplication(found: Multiplication | None) -> list[Fact]:
    if found is None:
        return []
    note = "copies of a frame a switch would take in if all flooded to every member, on average; broadcasts do not"
    if found["endless"]:
        return [Fact("Flood multiplication", "endless", "copies would circulate if switches flooded to every member")]
    return [Fact("Flood multiplication", f"{found['mean']:.4g}", f"{note}; at most {found['max']:,.0f}")]


def _pace(run: Run) -> Fact:
    if run.is_simulated:
        asked = run.environment.get("simulator")
        if not isinstance(asked, dict):
            return Fact("Engine", "simulator", "the run does not say how it was set")
        if "flow_control" not in asked:
            named = ", ".join(f"{_words(name)} {_value(value)}" for name, value in asked.items())
            return Fact("Engine", "simulator", f"flits with credits; {named}")
        how = {"none": "frames without memory are dropped", "pause": "802.3x PAUSE", "pfc": "802.1Qbb, by priority"}
        flow_control = asked["flow_control"]
        if flow_control is None:
            return Fact("Engine", "simulator", "the run's environment names no flow control")
        if not isinstance(flow_control, str) or flow_control not in how:
            return Fact("Engine", "simulator", f"flow control {_value(flow_control)}, which this program does not know")
        return Fact("Engine", "simulator", f"flow control {flow_control}: {how[flow_control]}")
    others = "".join(f"; {head.dilation:g} for {head.title}" for head in _at_others(run))
    return Fact("Dilation", f"{run.dilation:g}{others}", f"lab time runs that many times slower{_by_whom(run)}")


def _by_whom(run: Run) -> str:
    if run.plan.scenario.lab.dilation != "auto":
        return ""
    choice = run.manifest.get("dilation_choice") or {}
    if choice.get("guess_from") == _VIRTUAL_TIME:
        return "; what a processor carries that does so many instructions a second of its own clock, without a trial"
    if choice.get("kept_up_with_job") is False:
        return "; the smallest at which this machine kept up with flows, with an MPI job it did at none that was tried"
    return "; the smallest at which this machine kept up when it was tried"


def _virtual_machine(run: Run) -> list[Fact]:
    """In which time the virtual machine ran, if there was one, and why."""
    told = run.environment.get("vm")
    if not isinstance(told, Mapping):
        return []
    why = ", since KVM did not boot here" if told.get("why_not_kvm") else ""
    if told.get("virtual_time") is True:
        note = "its clock counted instructions, so that how fast or busy this machine was changed nothing"
        return [Fact("Virtual machine", f"in virtual time{why}", note)]
    translated = told.get("accelerator") == "tcg"
    how = "its instructions were translated" if translated else "on this machine's processors (KVM)"
    return [Fact("Virtual machine", f"in real time{why}", f"{how}, by this machine's clock")]


def _at_others(run: Run) -> list[LoadHead]:
    """Loads that ran at another dilation than the run."""
    return [head for head in load_heads(run.manifest, ()) if head.dilation not in (None, run.dilation)]


def dilation_sentence(run: Run) -> str:
    """How lab figures became those of the report."""
    rate, dilation = run.plan.scenario.links.rate, run.dilation
    if run.is_simulated:
        return (
            "Nothing was built: the loads were simulated at real-world rates, so no machine limits the "
            "figures, and none of its effects is in them."
        )
    if run.dilations == (1,):
        return "The lab ran in real time: the figures are as measured."
    others = "".join(f" In the same way, {head.title} ran {head.dilation:g} times slower." for head in _at_others(run))
    return (
        f"All figures are in the real-world units of the scenario. The lab ran {dilation:g} times slower: "
        f"its links carried {format_rate(rate / dilation)} in place of {format_rate(rate)}. A rate in the "
        f"lab was the rate shown here × 1/{dilation:g}, and a duration in the lab was the duration shown here "
        f"× {dilation:g}.{others}"
    )


def clock_sentence(error: float) -> str:
    """How well the clocks of several machines are known; `error` in laboratory s."""
    return (
        f"The clocks of the machines are known to ±{format_seconds(error)} of laboratory time: times of different "
        "machines may be off by so much beside each other."
    )


def describe_attempts(head: LoadHead) -> tuple[str, ...]:
    """Of a load that ran again, at which dilation that was, and what came of the attempts before."""
    return tuple(
        f"These figures are of dilation {head.dilation:g}; at {one.dilation:g} it was {one.verdict}: "
        f"{'; '.join(one.reasons)}"
        for one in head.attempts
    )


def environment(value: Any, name: str = "") -> list[tuple[str, str]]:
    """A nested environment as rows: names joined by a point, lists on one line."""
    if isinstance(value, Mapping):
        return [row for key, part in value.items() for row in environment(part, f"{name} · {_words(key)}".lstrip(" ·"))]
    if isinstance(value, list | tuple):
        if any(isinstance(part, Mapping | list | tuple) for part in value):
            return [row for number, part in enumerate(value, 1) for row in environment(part, f"{name} · {number}")]
        return [(name, ", ".join(_plain(part) for part in value) or "none")]
    return [(name, _plain(value))]


def result_files(run: Run) -> tuple[list[ResultFile], list[ResultFile]]:
    """The files that the manifest names and what else lies beside them, and the raw output of the tools."""
    listed = run.manifest.get("files")
    named = [str(name) for name in listed.values()] if isinstance(listed, Mapping) else []
    named = [name for name in named if not Path(name).is_absolute() and ".." not in Path(name).parts]
    beside = sorted((file for file in run.path.iterdir() if _is_own(file) and file.name not in named), key=_natural)
    raw = sorted((file for file in (run.path / "raw").rglob("*") if _is_own(file)), key=_natural)
    return (
        [_file(run.path, file) for file in (*(run.path / name for name in named if not name.endswith("/")), *beside)],
        [_file(run.path, file) for file in raw],
    )


def files_of_load(
    label: str, files: Sequence[ResultFile], raw_files: Sequence[ResultFile]
) -> tuple[list[ResultFile], int]:
    """The files that the figures of a load are in, not too many of its raw output, and how many more there are."""
    table = [file for file in files if file.name == SAMPLES]
    own = [file for file in files if label and re.search(rf"-{re.escape(label)}\.\w+$", file.name)]
    raw = [file for file in raw_files if label and file.name.startswith(f"raw/{label}/")]
    return [*table, *own, *raw[:_RAW_SHOWN]], max(0, len(raw) - _RAW_SHOWN)


def _is_own(file: Path) -> bool:
    """Whether a file is in the folder itself, and not behind a link."""
    return file.is_file() and not file.is_symlink()


def _file(folder: Path, file: Path) -> ResultFile:
    name = file.relative_to(folder).as_posix()
    return ResultFile(name, quote(name), -1 if name == "report.html" or not _is_own(file) else file.stat().st_size)


def _natural(file: Path) -> list[tuple[int, str]]:
    """Sorts h2 before h10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", file.as_posix())]


def _parameters(spec: Any) -> str:
    if not dataclasses.is_dataclass(spec):
        return ""
    values = ((field.name, getattr(spec, field.name)) for field in dataclasses.fields(spec))
    return ", ".join(f"{_words(name)} {_value(value)}" for name, value in values if value is not None)


def _value(value: Any) -> str:
    if isinstance(value, tuple | list):
        return " × ".join(map(str, value))
    return _words(value) if isinstance(value, str) else _plain(value)


def _words(name: object) -> str:
    return str(name).replace("_", " ")


def _plain(value: object) -> str:
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _describe_unused(count: int) -> str:
    return f"{count} directions on no path" if count else "every direction on some path"


def _identifiers(numbers: list[int]) -> str:
    if not numbers:
        return ""
    ends = str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    return f"identifiers {ends}"
