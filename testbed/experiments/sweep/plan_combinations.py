"""Plan and prove every combination before the first one runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from testbed.base.errors import CapabilityError, InputError, Problem, VerificationError, did_you_mean, setting
from testbed.engines.lab.hosts.available_memory import require_room
from testbed.experiments.compare.axis_values import MESSAGE_SIZE, SWITCHES_ON_PATH, number_at
from testbed.experiments.compare.variants import label_of, shorten_label
from testbed.experiments.run.engines import engine_named
from testbed.experiments.sweep.read_sweep import load_sweep
from testbed.experiments.sweep.sweep_spec import Combination, Sweep
from testbed.planning import Plan, make_plan
from testbed.scenario import Scenario, load_scenario
from testbed.scenario.read_scenario import as_dict


@dataclass(frozen=True, slots=True)
class Job:
    """A combination that can run."""

    label: str  # scenario and swept values, in words
    settings: tuple[str, ...]  # every key that is set, as `testbed run --set` takes it
    scenario: Scenario  # what is run
    scenario_digest: str  # of everything it says, loads included
    plan_digest: str  # of its plan


@dataclass(frozen=True, slots=True)
class Planned:
    """A sweep all of whose combinations are valid and proved."""

    sweep: Sweep
    jobs: tuple[Job, ...]


def prepare(
    file: Path,
    progress: Callable[[str], None] = lambda text: None,
    *,
    repeats: int | None = None,
    elsewhere: bool = False,
) -> Planned:
    """Read a sweep file, and load, plan and prove each of its combinations.

    `repeats`, where given, holds whatever the file says. With `elsewhere` this machine need not be able to run them.

    Raises:
        InputError: everything that is wrong with the file or with any combination.
        CapabilityError: this machine cannot run one of them.
    """
    sweep, problems = load_sweep(file, repeats)
    if sweep is None:
        raise InputError(problems)
    found: list[Job] = []
    refused: dict[tuple[str, str], dict[str, None]] = {}
    lacking: dict[str, None] = {}
    for number, combination in enumerate(sweep.combinations, 1):
        label = label_of(combination.scenario, combination.swept, sweep.labels)
        progress(f"planning and proving {number} of {len(sweep.combinations)}: {label}")
        try:
            plan = _plan(combination, Path(sweep.source).parent)
            missing = engine_named(plan.scenario.engine).find_missing(plan, lambda text: None)
            wrong = list(missing.problems)
            lacking |= dict.fromkeys(missing.lacking)
        except InputError as error:
            wrong = list(error.problems)
        for problem in wrong:
            refused.setdefault(_locate_problem(problem, combination, sweep), {})[label] = None
        if not wrong:
            label = label_of(plan.scenario.name, combination.swept, sweep.labels)
            found.append(Job(label, combination.settings, plan.scenario, _digest(plan.scenario), plan.digest))
    for (place, sentence), labels in refused.items():
        problems.append(Problem(place, f"{sentence}{_describe_labels(list(labels), len(sweep.combinations))}"))
    problems += _clashes(sweep, found)
    problems += _baseline(sweep, found)
    problems += _axes(sweep, found)
    if problems:
        raise InputError(problems)
    if lacking and not elsewhere:
        raise CapabilityError(list(lacking))
    return Planned(sweep, tuple(found))


def _plan(combination: Combination, folder: Path) -> Plan:
    """Raise InputError unless a run of it could start here; `folder` is the sweep's, which may be somebody else's."""
    below = folder if combination.file.is_relative_to(folder) else None
    scenario = load_scenario(combination.file, combination.settings, named=(), below=below)
    plan = make_plan(scenario, require_room)
    try:
        plan.require_proof()
    except VerificationError as error:
        raise InputError.one("", "; ".join([error.reason, *error.details]), scenario.source) from error
    if not scenario.workloads:
        raise InputError.one("workloads", "there is none, so nothing would be measured", scenario.source)
    return plan


def _locate_problem(problem: Problem, combination: Combination, sweep: Sweep) -> tuple[str, str]:
    """A problem at the key of the sweep file that causes it, else at the scenario's own."""
    keys = sorted((text.partition("=")[0] for text in combination.settings), key=len, reverse=True)
    set_key = problem.key.removeprefix(f"{setting('')} ")
    told = set_key != problem.key or problem.file == str(combination.file)
    for key in keys:
        place = set_key if told else ""
        if place and (f"{place}.".startswith(f"{key}.") or f"{key}.".startswith(f"{place}.")):
            here = place if key == "workloads" else f"set.{key}"
            return f"{sweep.source}: {here}", problem.sentence
    return problem.place, problem.sentence


def _describe_labels(labels: list[str], count: int) -> str:
    if len(labels) == count:
        return ""
    return f" (in {labels[0]}{f' and {len(labels) - 1} more' if len(labels) > 1 else ''})"


def _clashes(sweep: Sweep, found: Iterable[Job]) -> list[Problem]:
    """Two scenario files of one name would be taken for repeats of each other."""
    labels = [job.label for job in found]
    twice = dict.fromkeys(label for label in labels if labels.count(label) > 1)
    return [
        Problem(f"{sweep.source}: scenarios", f'two of them are called "{label}"; give one another name:')
        for label in twice
    ]


def _baseline(sweep: Sweep, found: Iterable[Job]) -> list[Problem]:
    names = dict.fromkeys(name for job in found for name in (job.scenario.name, job.label))
    if sweep.baseline is None or not names or {sweep.baseline, shorten_label(sweep.baseline)} & names.keys():
        return []
    sentence = f'no scenario of this sweep is called "{sweep.baseline}".{did_you_mean(sweep.baseline, names)}'
    return [Problem(f"{sweep.source}: baseline", f"{sentence} Known: {', '.join(names)}")]


def _axes(sweep: Sweep, found: Iterable[Job]) -> list[Problem]:
    problems = []
    blocks = [(job.label, as_dict(job.scenario)) for job in found]
    swept = dict.fromkeys(key for combination in sweep.combinations for key in combination.swept)
    for number, figure in enumerate(sweep.figures):
        if figure.x is None or figure.x in (SWITCHES_ON_PATH, MESSAGE_SIZE):
            continue
        lacking = [label for label, block in blocks if number_at(block, figure.x) is None]
        if lacking:
            meant = did_you_mean(figure.x, [SWITCHES_ON_PATH, MESSAGE_SIZE, *swept])
            labels = _describe_labels(lacking, len(blocks))
            sentence = f'"{figure.x}" is not a key of a scenario whose value is a number{labels}.'
            problems.append(Problem(f"{sweep.source}: figures.{number}.x", sentence + meant))
    return problems


def _digest(scenario: Scenario) -> str:
    text = json.dumps(as_dict(scenario), sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
