"""Paths that change without a lost frame, and what NPB loses when links go off (Koibuchi et al. 2011, 4.3 to 5.4.2)."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.command import testbed
from benchmarks.table import Figure

PARTS = ("changes", "npb")


def regulation(part: str, runs: int) -> list[Figure]:
    """Measure one of both.

    Args:
        part: `changes`: 100 changes of a path on a ring of four switches; `npb`: MG class S on a 4×4 torus of three
            parallel links.
        runs: rounds of `npb`.
    """
    return _changes() if part == "changes" else _npb(runs)


def _changes() -> list[Figure]:
    found = testbed("regulate", "ring4", "--every", "0.5", "--changes", "100")
    figures = []
    for path in ("fixed path", "changing path"):
        count = {s["metric"]: s["value"] for s in found["samples"] if s["labels"].get("path") == path}
        text = (
            f"{count['frames_lost']:.0f} of {count['frames_sent']:.0f} frames lost, "
            f"{count['connections_broken']:.0f} of {count['connections']:.0f} connections broken"
        )
        if "path_changes" in count:
            text += f", in {count['path_changes']:.0f} changes"
        figures.append(Figure(path, text))
    for path, what, least, mean, most in found["table7"]:
        factor, unit = (1e6, "µs") if what == "one-way latency" else (1e-6, "Mbit/s")
        text = f"{least * factor:.4g} / {mean * factor:.4g} / {most * factor:.4g} {unit} (least / mean / most)"
        figures.append(Figure(f"{path}, {what}", text))
    return [*figures, _verdict(found)]


def _npb(runs: int) -> list[Figure]:
    settings = ["--set", "workloads=[{kind: npb, kernel: MG, class: S, trace: true}]", "--set", "lab.dilation=800"]
    found = testbed("regulate", "torus4x4-3links", "--rounds", str(runs), *settings)
    figures = [
        Figure(
            f"power of the switches ({found['model']})",
            f"{found['watts_before']:.1f} W, {found['watts_after']:.1f} W with {len(found['off'])} links off: "
            f"{100 * found['saved']:.1f} % saved (at least 19 % wanted)",
        )
    ]
    for load in found["loads"]:
        before, after = load["before"], load["after"]
        spread = (max(before) - min(before)) / statistics.median(before)
        text = (
            f"{statistics.median(before):.4g} → {statistics.median(after):.4g} {load['unit']}, "
            f"{100 * (load['ratio'] - 1):+.1f} %; spread with all links on {100 * spread:.1f} %"
            f" ({len(before)} rounds; 1 % or the spread wanted)"
        )
        figures.append(Figure(load["title"], text))
    lost, sent = (
        sum(s["value"] for s in found["samples"] if s["metric"] == f"frames_{what}") for what in ("lost", "sent")
    )
    figures.append(Figure("frames while links go off and on", f"{lost:.0f} of {sent:.0f} lost"))
    return [*figures, _verdict(found)]


def _verdict(found: dict[str, Any]) -> Figure:
    return Figure("verdict", "; ".join([found["verdict"], *found["reasons"]]))
