"""What the figures of a comparison are relative to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from testbed.compare.variants import Variant
from testbed.errors import InputError, did_you_mean
from testbed.results import Run

# The ideal first, then what Ethernet offers without any of this.
_DEFAULTS = ("flat", "tree", "m_tree")


@dataclass(frozen=True, slots=True)
class Baseline:
    """One variant, or all of one scenario: then each variant refers to the one of equal settings.

    Attributes:
        label: how it is called.
        variants: those it consists of.
    """

    label: str
    variants: tuple[Variant, ...]

    def of(self, variant: Variant) -> Variant | None:
        """What a variant refers to; None where the baseline has no counterpart."""
        if len(self.variants) == 1:
            return self.variants[0]
        for candidate in self.variants:
            settings = {key: value for key, value in candidate.settings.items() if key != "plan"}
            if all(variant.fabric.get(key) == value for key, value in settings.items()):
                return candidate
        return None

    def first(self, variants: Sequence[Variant]) -> tuple[Variant, ...]:
        """All variants, those of the baseline before the others."""
        return (*self.variants, *(variant for variant in variants if variant not in self.variants))


def find_baseline(variants: Sequence[Variant], runs: Sequence[Run], wanted: str | None) -> Baseline:
    """Find the baseline among the variants.

    Args:
        variants: of the comparison.
        runs: of the comparison.
        wanted: label of a variant, name of a scenario or of a run's folder; None takes the flat topology, else the
            tree, else the first variant.

    Raises:
        InputError: there is none of that name.
    """
    if wanted is None:
        kinds = {variant.topology: variant.name for variant in reversed(variants)}
        wanted = next((kinds[kind] for kind in _DEFAULTS if kind in kinds), variants[0].name)
    named = tuple(variant for variant in variants if variant.name == wanted)
    if named and len({variant.label for variant in named if variant.settings}) > 1:
        return Baseline(wanted, named)
    for variant in (*named, *variants):
        if wanted in (variant.label, variant.name, *(runs[number].path.name for number in variant.runs)):
            return Baseline(variant.label, (variant,))
    known = dict.fromkeys([variant.name for variant in variants] + [variant.label for variant in variants])
    sentence = f"no run is of this scenario.{did_you_mean(wanted, known)} Known: {', '.join(known)}"
    raise InputError.one(f"--baseline {wanted}", sentence)
