"""Read a scenario file, gather every problem, and only then give up."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from testbed.base.errors import InputError, Problem, did_you_mean, setting
from testbed.base.files import read_text
from testbed.base.limits import YAML
from testbed.base.old_names import rename_keys
from testbed.base.synonyms import find_looked_for
from testbed.base.units import format_rate
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.topologies import TOPOLOGIES, size_problem
from testbed.fabric.topologies.faults import Faults, check_faults
from testbed.fabric.traffic import is_weighted
from testbed.fabric.verify.limits import SWITCH_MODELS
from testbed.fabric.vlans import ASSIGNMENTS
from testbed.scenario.engines import ENGINES, Simulator, VmOptions, engine_name
from testbed.scenario.fabric_file import TOPOLOGY_BLOCKS, read_fabric_file
from testbed.scenario.load_traffic import with_pattern
from testbed.scenario.named_files import EVERY_KEY, ScenarioFolder
from testbed.scenario.parameter_models import fill, format_value, key_of, not_one_of, unknown_key
from testbed.scenario.paths_file import with_paths
from testbed.scenario.plugins import load_files, load_installed, why_broken
from testbed.scenario.read_blocks import read_blocks
from testbed.scenario.spec import (
    EXPECTATIONS,
    KEYS,
    MIN_SHARE,
    SLOWEST_LAB_LINK,
    LabSettings,
    Links,
    PluginParameters,
    Scenario,
    Workload,
)
from testbed.scenario.workloads import WORKLOADS

# Which table the kinds of a block are from.
_GROUPS = {"topology": "topologies", "routing": "routings", "assignment": "assignments", "workloads": "workloads"}


def load_scenario(
    file: Path,
    settings: Iterable[str] = (),
    *,
    trust: bool = False,
    named: Iterable[str] | None = None,
    below: Path | None = None,
) -> Scenario:
    """Read a scenario.

    `settings` are `key.key=value` texts that replace what the file says; `trust`: whether the caller has said that the
    plug-ins that it names may run. Otherwise only those do that have been trusted before, or that a front end is told
    to (testbed/base/trust.py). `named`: keys that the caller himself has given, so that files which they name may be
    anywhere; None = those of the settings. `below`: folder on the way to the file from which on no link is followed.

    Raises:
        InputError: everything that is wrong with it.
    """
    try:
        text = read_text(file, below, most=YAML)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError.one(str(file), f"cannot be read: {reason}") from error
    return parse_scenario(text, str(file), settings, trust=trust, named=named)


def parse_scenario(
    text: str, source: str, settings: Iterable[str] = (), *, trust: bool = False, named: Iterable[str] | None = None
) -> Scenario:
    """Make a scenario from YAML text; see load_scenario."""
    settings = tuple(settings)
    raw, problems = read_blocks(text, source, settings)
    paths = [one.partition("=")[0].strip() for one in settings]
    try:
        return scenario_of_blocks(raw, source, problems, trust=trust, named=paths if named is None else named)
    except InputError as error:
        raise InputError([_of_setting(problem, source, paths) for problem in error.problems]) from error


def _of_setting(problem: Problem, source: str, paths: Iterable[str]) -> Problem:
    """A problem of a file, told as one of the setting that has put its key there, where one has."""
    if problem.file == source and any(f"{problem.key}.".startswith(f"{path}.") for path in paths):
        return Problem(setting(problem.key), problem.sentence)
    return problem


def scenario_of_blocks(
    raw: dict[str, object],
    source: str,
    problems: Iterable[Problem] = (),
    *,
    stored: bool = False,
    trust: bool = False,
    named: Iterable[str] = (),
) -> Scenario:
    """Make a scenario from its blocks, such as as_dict returns.

    Files are looked for beside `source`; `problems` are what is wrong with the blocks already. Of a `stored` plan
    no plug-in is loaded, and what this program knows nothing of stays as it is (`Foreign`). `trust` as in
    load_scenario(); `named`: keys that the caller himself has given, whose files may be anywhere.

    Raises:
        InputError: everything that is wrong with them.
    """
    found: list[Problem] = []
    scenario = _scenario(raw, ScenarioFolder.of_file(source, named), source, found, stored=stored, trust=trust)
    every = [*problems, *(problem.in_file(source) for problem in found)]
    if every or scenario is None:
        raise InputError(every)
    return scenario


def _scenario(
    raw: dict[str, Any], beside: ScenarioFolder, source: str, problems: list[Problem], *, stored: bool, trust: bool
) -> Scenario | None:
    problems += [Problem(key, unknown_key(key, KEYS)) for key in raw if key not in KEYS]
    name, description = _texts(raw, source, problems)
    plugins = tuple(raw.get("plugins", ())) if stored else ()
    if not stored:
        load_installed()
        loaded = load_files(raw.get("plugins", []), beside.folder, problems, trust=trust)
        if loaded is None:
            return None
        plugins = loaded
    of_links: list[Problem] = []
    links = fill(Links, raw.get("links", {}), "links", of_links)
    notes: list[str] = []
    topology_kind, topology = _topology(raw, beside, problems, notes, stored=stored)
    faults = fill(Faults, raw.get("faults", {}), "faults", problems)
    if faults is not None:
        problems += [Problem(f"faults.{problem.place}", problem.sentence) for problem in check_faults(faults)]
    # Of an unknown topology the fitting routing is unknown too; that is no second problem.
    routing = TOPOLOGIES[topology_kind].routing if topology_kind in TOPOLOGIES else ""
    if routing and links is not None and (links.add or links.remove) and not ROUTINGS[routing].any_topology:
        routing = "updown"  # takes what the topology's own does not know
    routing_kind, options = _kind(
        with_paths(raw.get("routing", {}), beside, problems), "routing", problems, table=ROUTINGS, part="options",
        default=routing, stored=stored,
    )  # fmt: skip
    assignment_kind, assignment = _kind(
        raw.get("assignment", {}),
        "assignment",
        problems,
        table=ASSIGNMENTS,
        part="options",
        default=ROUTINGS[routing_kind].assignment if routing_kind in ROUTINGS else "",
        stored=stored,
    )
    _learning_elsewhere(assignment_kind, problems)
    model, expect = raw.get("switch_model"), raw.get("expect", EXPECTATIONS[0])
    if model is not None and model not in [*SWITCH_MODELS]:
        problems.append(Problem("switch_model", not_one_of(model, [*SWITCH_MODELS])))
    if expect not in EXPECTATIONS:
        problems.append(Problem("expect", not_one_of(expect, EXPECTATIONS)))
    problems += of_links
    if links is not None and routing_kind and (links.add or links.remove):
        problems += _check_faulty_routing(routing_kind)
    engine = engine_name(raw.get("engine", "ovs"))
    if engine not in [*ENGINES]:
        problems.append(Problem("engine", not_one_of(engine, [*ENGINES])))
    lab = fill(LabSettings, raw.get("lab", {}), "lab", problems)
    vm = fill(VmOptions, raw.get("vm", {}), "vm", problems)
    simulator = fill(Simulator, raw.get("simulator", {}), "simulator", problems)
    workloads = _workloads(raw.get("workloads", []), beside, problems, stored=stored)
    if links is not None and lab is not None:
        problems += [*_too_slow(links, lab), *_too_small_share(lab)]
    if links is not None and links.aggregate:
        problems += _told_apart(options)
    if links is not None and links.rates:
        problems += _rates(links)
    if problems:
        return None
    return Scenario(
        name, description, source, topology_kind, topology, faults, routing_kind, options,
        assignment_kind, assignment, model, expect, links, engine, lab, vm, simulator, workloads,
        plugins, tuple(notes),
    )  # fmt: skip


def _topology(
    raw: dict[str, object], beside: ScenarioFolder, problems: list[Problem], notes: list[str], *, stored: bool
) -> tuple[str, Any]:
    """Kind and parameters; a file becomes the graph that it describes. Without parameters there is a problem.

    What is to be said of how a file was read is added to `notes`.
    """
    if "topology" not in raw:
        problems.append(Problem("topology", f"is required: a block with its kind, one of {', '.join(TOPOLOGY_BLOCKS)}"))
        return "", None
    kind, topology = _kind(raw["topology"], "topology", problems, table=TOPOLOGY_BLOCKS, part="spec", stored=stored)
    if kind == "file":
        kind = "graph"
        if topology is not None:
            read = read_fabric_file(topology, beside, problems)
            topology = None if read is None else read.graph
            notes += () if read is None else read.notes
    if topology is None or isinstance(topology, PluginParameters):
        return kind, topology
    too_large = size_problem(topology)
    if too_large:
        problems.append(Problem("topology", too_large))
        return kind, topology
    for problem in TOPOLOGIES[kind].check(topology):
        place = f"topology.{problem.place}" if problem.place else "topology"
        problems.append(Problem(place, problem.sentence))
    return kind, topology


def _texts(raw: dict[str, Any], source: str, problems: list[Problem]) -> tuple[str, str]:
    name, description = raw.get("name", Path(source).stem), raw.get("description", "")
    if not isinstance(description, str):
        problems.append(Problem("description", f"should be text (in quotes), not {format_value(description)}"))
    if not isinstance(name, str) or not name.replace("-", "").replace("_", "").isalnum():
        origin = "" if "name" in raw else ", the name of the file; rename it or set name:"
        problems.append(Problem("name", f'should be letters, digits, "-" and "_", not {format_value(name)}{origin}'))
    return name, description


def _kind(
    raw: object,
    place: str,
    problems: list[Problem],
    *,
    table: Mapping[str, Any],
    part: str,
    default: str | None = None,
    stored: bool = False,
) -> tuple[str, Any]:
    """Look a block's `kind` up in a table and fill its parameters; a text is a block with nothing but its kind.

    `part` is the attribute of a table's entry that is the dataclass of parameters; `default` the kind of a block that
    names none, empty where that cannot be known. A kind that is not in the table is kept where it is `stored`.
    """
    raw = {"kind": raw} if isinstance(raw, str) else raw
    if not isinstance(raw, dict):
        sentence = f"should be a block such as {{kind: {next(iter(table))}, …}}, not {format_value(raw)}"
        problems.append(Problem(place, sentence))
        return "", None
    kind = raw.get("kind", default)
    if kind == "" and "kind" not in raw:
        return "", None
    if kind is None:
        near = [key for key in raw if did_you_mean(key, ["kind"])]
        meant = f'. Is "{near[0]}" meant?' if near else ""
        problems.append(Problem(f"{place}.kind", f"is required: one of {', '.join(table)}{meant}"))
        return "", None
    values = {key: value for key, value in raw.items() if key != "kind"}
    if stored and isinstance(kind, str) and kind not in table:
        return kind, PluginParameters(values)
    if not isinstance(kind, str) or kind not in table:
        problems.append(Problem(f"{place}.kind", _no_kind(place.partition(".")[0], kind, table)))
        return "", None
    return kind, fill(getattr(table[kind], part), values, place, problems, ["kind"])


def _no_kind(block: str, kind: object, table: Mapping[str, Any]) -> str:
    """The sentence for a kind that there is not, or not any more."""
    broken = why_broken(_GROUPS[block], kind)
    if broken:
        return f"the plug-in {format_value(kind)} cannot be used: {broken}"
    noun = block.removesuffix("s")  # one of workloads is a workload
    near = find_looked_for(str(kind), table) or did_you_mean(str(kind), table)
    return f"there is no {noun} {format_value(kind)}.{near} Known: {', '.join(table)}"


def _workloads(raw: object, beside: ScenarioFolder, problems: list[Problem], *, stored: bool) -> tuple[Workload, ...]:
    if not isinstance(raw, list):
        problems.append(Problem("workloads", f"should be a list such as [{{kind: ping}}], not {format_value(raw)}"))
        return ()
    loads = []
    for number, load in enumerate(raw):
        place = f"workloads.{number}"
        load = {"kind": load} if isinstance(load, str) else load  # noqa: PLW2901 - the same load, in other words
        if isinstance(load, dict) and takes_pattern(load.get("kind")):
            load = with_pattern(load, place, beside, problems)  # noqa: PLW2901 - likewise
        if isinstance(load, dict):
            load = rename_keys("workloads", load, place, quiet=stored)  # noqa: PLW2901 - likewise
        kind, spec = _kind(load, place, problems, table=WORKLOADS, part="spec", stored=stored)
        if spec is not None and not isinstance(spec, PluginParameters):
            found = [*WORKLOADS[kind].check(spec), *WORKLOADS[kind].list_inapplicable(spec, list(load))]
            found += _amounts(kind, spec)
            problems += [Problem(f"{place}.{p.key}", p.sentence) for p in found]
        loads.append(Workload(kind, spec))
    return tuple(loads)


def _amounts(kind: str, spec: Any) -> list[Problem]:
    """Pairs with different amounts in a load that cannot keep their ratio."""
    if not is_weighted(getattr(spec, "pattern", None)):
        return []
    if (kind, getattr(spec, "protocol", "")) != ("iperf3", "udp"):
        sentence = (
            "gives pairs different amounts, and only flows that are sent at a rate keep them: kind iperf3, protocol "
            "udp; make them equal, or let the simulator replay them: testbed simulate --matrix"
        )
        return [Problem("pattern", sentence)]
    if spec.offered_load > 1:
        sentence = f"is {spec.offered_load:g}, so full links drop, and flows do not keep their amounts; use 1 or less"
        return [Problem("offered_load", sentence)]
    return []


def parse_loads(raw: object, source: str) -> tuple[Workload, ...]:
    """Make loads of a list such as `workloads` of a scenario has, for a lab that is there already.

    Files are looked for beside `source`, which problems name; they are the caller's, and may be anywhere.

    Raises:
        InputError: everything that is wrong with them.
    """
    problems: list[Problem] = []
    load_installed()
    loads = _workloads(raw, ScenarioFolder.of_file(source, [EVERY_KEY]), problems, stored=False)
    if problems:
        raise InputError([problem.in_file(source) for problem in problems])
    return loads


def takes_pattern(kind: object) -> bool:
    """Whether loads of a kind say who sends to whom."""
    entry = WORKLOADS.get(kind) if isinstance(kind, str) else None
    return entry is not None and any(field.name == "pattern" for field in dataclasses.fields(entry.spec))


def _too_slow(links: Links, lab: LabSettings) -> list[Problem]:
    real = links.slowest
    slowest = real if lab.dilation == "auto" else real / lab.chosen_dilation
    if slowest >= SLOWEST_LAB_LINK:
        return []
    sentence = (
        f"a lab link would run at {format_rate(slowest)}; below {format_rate(SLOWEST_LAB_LINK)} nothing can be measured"
    )
    most = real / SLOWEST_LAB_LINK
    if most < 1:
        return [Problem("links", f"{sentence}, so use {format_rate(SLOWEST_LAB_LINK)} or more")]
    return [Problem("lab.dilation", f"{sentence}, so use {most:.6g} or less")]


def _learning_elsewhere(kind: str, problems: list[Problem]) -> None:
    """Say of switches that are to learn where they cannot why that is, instead of only that the key is unknown."""
    sentence = (
        f'"{kind}" takes static entries only: a switch learns the way back along the VLAN that a frame came in, and '
        'only with "fixed" is that a path of the plan; leave it out, or use kind: fixed with a routing that fits it'
    )
    for number, problem in enumerate(problems):
        if kind != "fixed" and problem.place == "assignment.registration":
            problems[number] = Problem(problem.place, sentence)


def _check_faulty_routing(routing: str) -> list[Problem]:
    """A routing of a regular topology, which knows the links that this has by itself."""
    if routing not in ROUTINGS or ROUTINGS[routing].any_topology or routing == "paths":
        return []
    holding = ", ".join([*(name for name, kind in ROUTINGS.items() if kind.any_topology), "paths"])
    sentence = f'"{routing}" routes by the links of the plain topology, and links.add or remove changes them; use '
    return [Problem("routing.kind", f"{sentence}one that takes any fabric: {holding}")]


def _rates(links: Links) -> list[Problem]:
    """Links that are faster than all links are, and rates of links that are one link where they are bundled."""
    found = [
        Problem(
            f"links.rates.{name}",
            f"is {format_rate(rate)} and links.rate {format_rate(links.rate)}; make links.rate that of the fastest",
        )
        for name, rate in (links.rates or {}).items()
        if rate > links.rate
    ]
    if links.aggregate:
        sentence = (
            "gives single links a rate, and links.aggregate: true makes parallel links one; leave out one of the two"
        )
        found.append(Problem("links.rates", sentence))
    return found


def _told_apart(routing: Any) -> list[Problem]:
    """Rules of a routing that send frames by one of two parallel links, which are one link where they are bundled."""
    chosen = {key: getattr(routing, key, None) for key in ("planes", "ring")}
    return [
        Problem(
            f"routing.{key}",
            f'"{value}" tells parallel links apart, and links.aggregate: true makes them one link; leave out one of '
            "the two",
        )
        for key, value in chosen.items()
        if value in ("link", "node", "dest", "two_trees")
    ]


def _too_small_share(lab: LabSettings) -> list[Problem]:
    if lab.cpu_share != "auto" or lab.dilation == "auto" or 1 / lab.chosen_dilation >= MIN_SHARE:
        return []
    sentence = (
        f"auto would be 1/{lab.dilation:g} of a processor and Linux gives no host less than {MIN_SHARE:g}; use "
        f"lab.dilation {1 / MIN_SHARE:g} or less"
    )
    return [Problem("lab.cpu_share", sentence)]


def as_dict(scenario: Scenario) -> dict[str, Any]:
    """Return the scenario with every default filled in, in the form of its file (rates as text)."""

    def lists(value: Any) -> Any:
        return [lists(entry) for entry in value] if isinstance(value, tuple) else value

    def block(kind: str | None, spec: Any) -> dict[str, object]:
        given = spec.values if isinstance(spec, PluginParameters) else dataclasses.asdict(spec)
        values = {key_of(name): lists(value) for name, value in given.items()}
        return {"kind": kind, **values} if kind else values

    links = block(None, scenario.links)
    for key in ("rate", "host_rate"):
        links[key] = None if links[key] is None else f"{links[key]:.17g} bit/s"
    if links["rates"]:
        links["rates"] = {name: f"{rate:.17g} bit/s" for name, rate in (scenario.links.rates or {}).items()}
    for key in ("host_rate", "add", "remove", "rates"):
        if not links[key]:
            del links[key]
    return {
        "name": scenario.name,
        "description": scenario.description,
        "plugins": list(scenario.plugins),
        "topology": block(scenario.topology_kind, scenario.topology),
        "faults": block(None, scenario.faults),
        "routing": block(scenario.routing_kind, scenario.routing),
        "assignment": block(scenario.assignment_kind, scenario.assignment),
        "switch_model": scenario.switch_model,
        "expect": scenario.expect,
        "links": links,
        "engine": scenario.engine,
        "lab": block(None, scenario.lab),
        "vm": block(None, scenario.vm),
        "simulator": {key: value for key, value in block(None, scenario.simulator).items() if value is not None},
        "workloads": [_meaningful(load, block(load.kind, load.spec)) for load in scenario.workloads],
    }


def _meaningful(load: Workload, block: dict[str, object]) -> dict[str, object]:
    """The block of a load without the keys that say nothing in it."""
    if isinstance(load.spec, PluginParameters):
        return block
    idle = {problem.key for problem in WORKLOADS[load.kind].list_inapplicable(load.spec, list(block))}
    return {key: value for key, value in block.items() if key not in idle}
