"""Which runs are repeats of each other, what the others are called, and which one figures are relative to.

Runs of one scenario with equal settings and an equal plan are repeats. What they are loaded with is no part of it: a
load is compared with the same load elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.base.errors import InputError, argument, did_you_mean
from testbed.results import SIMULATION, Run
from testbed.scenario.parameter_models import format_value
from testbed.scenario.read_scenario import as_dict

_NOT_THE_FABRIC = ("name", "description", "workloads")
NO_WORDS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Variant:
    """A scenario with its settings: what a row or a line represents."""

    label: str  # its name, with the settings that tell it from others of that name
    name: str  # of the scenario
    settings: Mapping[str, Any]  # what differs between variants of this name, as key → value
    fabric: Mapping[str, Any]  # all settings but loads and texts, and but the swept one, as key → value
    # of the lab; of the first run where the dilation is what varies. None where there was no lab.
    dilation: float | None
    topology: str  # kind of topology
    hosts: int  # number of them, of the first run
    runs: tuple[int, ...]  # positions of its runs, each a repeat of the others unless the swept key tells them apart


def variants(
    runs: Sequence[Run],
    swept: str | None = None,
    *,
    each: bool = False,
    keys: Sequence[str] = (),
    words: Mapping[str, str] = NO_WORDS,
) -> tuple[Variant, ...]:
    """Group runs, in the order of their first ones, those of one name together.

    Args:
        runs: of scenarios.
        swept: a key of the scenario along which runs differ within a variant.
        each: whether every run is a variant of its own, called after its folder.
        keys: of the scenario, by which variants are told apart; none = as few as tell them apart.
        words: what settings are called, see label_of.
    """
    fabrics = [_fabric(run, swept) for run in runs]
    groups: dict[str, list[int]] = {}
    for number, run in enumerate(runs):
        # Along a swept key the plan may change; elsewhere equal settings with another plan are another program's.
        plan = run.plan.digest if swept is None else ""
        key = repr((_name(run), fabrics[number], plan, number if each else 0))
        groups.setdefault(key, []).append(number)
    found = []
    for members in groups.values():
        first = members[0]
        name = _name(runs[first])
        namesakes = [other[0] for other in groups.values() if _name(runs[other[0]]) == name]
        settings = {} if each else _told_apart(first, namesakes, runs, fabrics, keys)
        scenario, topology = runs[first].plan.scenario, runs[first].plan.topology
        dilation = None if runs[first].is_simulated else runs[first].dilation
        found.append(
            Variant(
                runs[first].path.name if each else label_of(name, settings, words),
                name, settings, fabrics[first], dilation,
                scenario.topology_kind, topology.host_count, tuple(members),
            )
        )  # fmt: skip
    names = [variant.name for variant in found]
    return tuple(sorted(found, key=lambda variant: names.index(variant.name)))


def _name(run: Run) -> str:
    simulated = " (simulated)" if run.manifest.get("kind") == SIMULATION else ""
    return f"{run.plan.scenario.name}{simulated}"


def label_of(name: str, settings: Mapping[str, Any], words: Mapping[str, str] = NO_WORDS) -> str:
    """A scenario's name and settings as figures have them: `torus4x4 updown dilation=200`.

    Settings have the last part of their key, kinds none; `words` are what to call some of them instead.
    """
    short = [_short(key) for key in settings]
    shown_keys = {key: key if short.count(_short(key)) > 1 else _short(key) for key in settings}
    kinds_first = sorted(settings, key=lambda key: bool(_short(key)))
    texts = [f"{shown_keys[key]}={value_text(settings[key])}".removeprefix("=") for key in kinds_first]
    return " ".join([name, *(words.get(text, text) for text in texts)])


def _short(key: str) -> str:
    """The last part of a key; nothing of a kind."""
    last = key.rpartition(".")[2]
    return "" if last == "kind" else last


def shorten_label(label: str) -> str:
    """A label as it is typed after `testbed run`, such as `torus4x4 routing.kind=updown`, in its short form."""
    return re.sub(r"(?<= )[\w.]+\.kind=|(?<= )[\w.]+\.(?=\w+=)", "", label)


def value_text(value: Any) -> str:
    """A setting in one line: 200 for 200.0, text without its quotes."""
    if value is None:
        return "default"
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    return value if isinstance(value, str) else format_value(value)


def value_at(blocks: Any, path: str) -> Any:
    """Value of a key such as `topology.sizes.0`; None where there is none."""
    for key in path.split("."):
        if isinstance(blocks, Mapping):
            blocks = blocks.get(key)
        elif isinstance(blocks, list) and key.isdecimal() and int(key) < len(blocks):
            blocks = blocks[int(key)]
        else:
            return None
    return blocks


def _fabric(run: Run, swept: str | None) -> dict[str, object]:
    """Settings of the fabric as key → value, without the swept one."""
    blocks = as_dict(run.plan.scenario)
    if swept is not None:
        *above, last = swept.split(".")
        block = value_at(blocks, ".".join(above)) if above else blocks
        if isinstance(block, dict):
            block.pop(last, None)
        elif isinstance(block, list) and last.isdecimal() and int(last) < len(block):
            block[int(last)] = None
    flat: dict[str, object] = {}
    for key, value in blocks.items():
        if isinstance(value, dict):
            flat |= {f"{key}.{inner}": deep for inner, deep in value.items()}
        else:
            flat[key] = value
    return {key: value for key, value in flat.items() if key.partition(".")[0] not in _NOT_THE_FABRIC}


def _told_apart(
    first: int,
    namesakes: Sequence[int],
    runs: Sequence[Run],
    fabrics: Sequence[Mapping[str, Any]],
    given: Sequence[str],
) -> dict[str, object]:
    """The settings of a variant that tell it from the others of its name: those given, else as few as do.

    Where a routing differs, so do its options and often the assignment; its kind says enough.
    """
    every = dict.fromkeys(key for other in namesakes for key in fabrics[other])
    kinds_first = sorted(every, key=lambda key: bool(_short(key)))
    chosen: list[str] = []

    def groups(keys: Sequence[str]) -> int:
        return len({repr([fabrics[other].get(key) for key in keys]) for other in namesakes})

    for key in [*(key for key in given if key in every), *kinds_first]:
        if groups([*chosen, key]) > groups(chosen):
            chosen.append(key)
    settings = {key: fabrics[first].get(key) for key in chosen}
    if any(fabrics[other] == fabrics[first] for other in namesakes if other != first):
        settings["plan"] = runs[first].plan.digest
    return settings


# The ideal first, then what Ethernet offers without any of this.
_DEFAULTS = ("flat", "tree", "m_tree")


@dataclass(frozen=True, slots=True)
class Baseline:
    """One variant, or all of one scenario: then each variant refers to the one of equal settings."""

    label: str  # how it is called
    variants: tuple[Variant, ...]  # those it consists of

    def counterpart(self, variant: Variant) -> Variant | None:
        """What a variant refers to; None where the baseline has no counterpart."""
        if len(self.variants) == 1:
            return self.variants[0]
        for candidate in self.variants:
            settings = {key: value for key, value in candidate.settings.items() if key != "plan"}
            if all(variant.fabric.get(key) == value for key, value in settings.items()):
                return candidate
        return None

    def order_variants(self, variants: Sequence[Variant]) -> tuple[Variant, ...]:
        """All variants, those of the baseline before the others."""
        return (*self.variants, *(variant for variant in variants if variant not in self.variants))


def find_baseline(variants: Sequence[Variant], runs: Sequence[Run], wanted: str | None) -> Baseline:
    """Find the baseline among the variants.

    `wanted` is the label of a variant, the name of a scenario or of a run's folder; None takes the flat topology, else
    the tree, else the first variant. A scenario that is the only one has no other of equal settings beside it: then
    its first variant is the baseline, as nothing else would be compared with anything.

    Raises:
        InputError: there is none of that name.
    """
    if wanted is None:
        kinds = {variant.topology: variant.name for variant in reversed(variants)}
        wanted = next((kinds[kind] for kind in _DEFAULTS if kind in kinds), variants[0].name)
    named = tuple(variant for variant in variants if variant.name == wanted)
    if len({variant.label for variant in named if variant.settings}) > 1:
        return Baseline(wanted, named) if len(named) < len(variants) else Baseline(named[0].label, named[:1])
    for variant in (*named, *variants):
        if {wanted, shorten_label(wanted)} & {
            variant.label,
            variant.name,
            *(runs[number].path.name for number in variant.runs),
        }:
            return Baseline(variant.label, (variant,))
    known = dict.fromkeys([variant.name for variant in variants] + [variant.label for variant in variants])
    sentence = f"no run is of this scenario.{did_you_mean(wanted, known)} Known: {', '.join(known)}"
    raise InputError.one(argument("baseline", wanted), sentence)
