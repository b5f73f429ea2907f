"""No figure beats the wire: measured figures against what links allow at most."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from testbed.base.model import Floats, Sample
from testbed.base.units import format_quantity
from testbed.dataplane.predict import Least, Ways, Wires, wire_shares
from testbed.dataplane.predict.bounds import AT_LEAST, AT_MOST
from testbed.experiments.run.checks.fidelity import Finding, Verdict

# How far a figure may be beyond what links allow: a port that was served late makes up for it at a rate that is by less
# than that above its link's, and counters are read within a moment, not at an instant.
BEYOND = 0.02
# A figure of which the lab's ports do not hold so much says nothing about a link.
MOSTLY_UNHELD = 0.2
# Label of a figure part of whose time the lab's ports do not hold: which share of the prediction.
UNHELD = "unheld"
_NOT_THE_LINKS = "it was not the links that made it"
_USE = frozenset({"link_use", "member_use"})


def add_wire_bound(sample: Sample, least: Least, bits: float = 1.0) -> Sample:
    """Give a sample the bound that links set, and the share of it that the lab's ports do not hold where that counts.

    Args:
        sample: a real-world time or rate, of one of the metrics of AT_LEAST and AT_MOST.
        least: time that links need.
        bits: what that time is for; of rates.
    """
    if least.seconds <= 0:
        return sample
    predicted = least.seconds if sample.metric in AT_LEAST else bits / least.seconds
    return replace(mark_unheld(sample, least), predicted=predicted)


def mark_unheld(sample: Sample, least: Least) -> Sample:
    """A sample with the share of the links' time that the lab's ports do not hold, where that counts."""
    if least.unheld <= BEYOND:
        return sample
    return replace(sample, labels={**sample.labels, UNHELD: f"{least.unheld:.2f}"})


def read_unheld_share(sample: Sample) -> float:
    """Share of the predicted time that the lab's ports do not hold, so that what is measured is software's."""
    return float(sample.labels.get(UNHELD, 0.0))


def behind_bounds(samples: Iterable[Sample]) -> float | None:
    """By which share the figures that links decide are behind what links allow, the farthest of them; None without one.

    Of several statistics of a figure the median or mean counts, over ranks that of the slowest; times of single frames,
    which ports do not hold, do not.
    """
    return max((_compute_shortfall(sample) for sample in samples if _decided_by_links(sample)), default=None)


def _decided_by_links(sample: Sample) -> bool:
    central = "over" in sample.labels or sample.labels.get("statistic") not in ("min", "max")
    bound = sample.metric in AT_LEAST | AT_MOST and sample.predicted is not None and sample.predicted > 0
    return bound and central and read_unheld_share(sample) <= MOSTLY_UNHELD


def _compute_shortfall(sample: Sample) -> float:
    predicted = sample.predicted or 0.0
    if sample.metric in AT_LEAST:
        return sample.value / predicted - 1
    return predicted / sample.value - 1 if sample.value > 0 else math.inf


def judge_wire(samples: Iterable[Sample]) -> list[Finding]:
    """Whether figures are beyond what links allow; of each metric the one that is farthest."""
    farthest: dict[str, tuple[float, Sample]] = {}
    for sample in samples:
        beyond = _compute_excess(sample)
        if beyond > max(BEYOND, farthest.get(sample.metric, (0.0, sample))[0]):
            farthest[sample.metric] = beyond, sample
    return [(Verdict.INVALID, _sentence(sample)) for _, sample in farthest.values()]


def _compute_excess(sample: Sample) -> float:
    """By which share a figure is beyond its bound; 0 or less where it is not."""
    if sample.metric in _USE:
        return sample.value - 1
    if sample.predicted is None or sample.predicted <= 0:
        return 0.0
    held = 1 - read_unheld_share(sample)
    if sample.metric in AT_LEAST:
        return 1 - sample.value / (sample.predicted * held) if held > 0 else 0.0
    if sample.metric in AT_MOST:
        return sample.value * held / sample.predicted - 1
    return 0.0


def _sentence(sample: Sample) -> str:
    labels = sample.labels
    if sample.metric in _USE:
        return f"the link {labels.get('channel', '')} carried {100 * sample.value:.1f} % of what it can"
    of = [f"{labels['src']}→{labels['dst']}"] if "src" in labels and "dst" in labels else []
    what = " ".join([sample.metric, *of, *([f"{labels['bytes']} B"] if "bytes" in labels else [])])
    time = sample.metric in AT_LEAST
    limit = format_quantity(
        (sample.predicted or 0.0) * (1 - read_unheld_share(sample)) ** (1 if time else -1), sample.unit
    )
    allowed = f"at {'least' if time else 'most'} {limit}"
    return f"{what} is {format_quantity(sample.value, sample.unit)} where the links allow {allowed}: {_NOT_THE_LINKS}"


def judge_goodput(wires: Wires, flows: Sequence[tuple[int, int]], ways: Ways, goodput: Floats) -> list[Finding]:
    """Payload that arrived must have had room on every wire, with its headers.

    `goodput`: (F,) bit/s of each flow, NaN for one that is not known.
    """
    shares = wire_shares(wires, flows, ways, np.nan_to_num(goodput))
    worst = int(shares.argmax())
    if shares[worst] <= 1 + BEYOND:
        return []
    sentence = (
        f"what arrived takes {100 * shares[worst]:.1f} % of what the link {wires.name(worst)} can carry: "
        f"{_NOT_THE_LINKS}"
    )
    return [(Verdict.INVALID, sentence)]
