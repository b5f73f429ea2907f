"""Colours of the page and its drawings, each for a light and a dark page; told apart with any colour vision.

Drawings are made in the light colours; `svg.py` then writes each as a CSS variable that the page sets.
"""

from __future__ import annotations

INK = "#1b1f23"
MUTED = "#59626a"
GRID = "#d3d8dd"
PAPER = "#fffffe"
BOX = "#eef1f4"
LINK = "#9aa3ab"
MEASURED = "#0072b2"
PREDICTED = "#e69f00"
TREES = (MEASURED, "#c84e00", "#00805f", "#a8558a")
# Magma and inferno, cut so that both ends stand out from the page: light to dark, and dark to light.
HEAT = ("#febd82", "#fea571", "#fc8c63", "#f8745c", "#ef5d5e", "#df4a68",
        "#cc3f71", "#b73779", "#a1307e", "#8c2981", "#782281", "#641a80")  # fmt: skip
_HEAT_ON_DARK = ("#6a176e", "#82206c", "#9b2964", "#b3325a", "#c83f4b", "#db503b",
                 "#eb6429", "#f57d15", "#fb9706", "#fcb418", "#f7d340", "#f1ef75")  # fmt: skip

# variable → (light, dark)
COLOURS: dict[str, tuple[str, str]] = {
    "ink": (INK, "#e8eaed"),
    "muted": (MUTED, "#a2abb4"),
    "grid": (GRID, "#3b434b"),
    "paper": (PAPER, "#14181c"),
    "box": (BOX, "#2a3138"),
    "link": (LINK, "#69737d"),
    "measured": (MEASURED, "#4fa8e0"),
    "predicted": (PREDICTED, "#f2b134"),
    "tree-2": (TREES[1], "#ff8a47"),
    "tree-3": (TREES[2], "#35c79a"),
    "tree-4": (TREES[3], "#dd93c2"),
    **{f"heat-{level}": pair for level, pair in enumerate(zip(HEAT, _HEAT_ON_DARK, strict=True))},
    "pass": ("#1a6b34", "#7ddb98"),
    "warn": ("#8a5a00", "#f0c060"),
    "bad": ("#a61b1b", "#ff9a94"),
}


def declarations(*, dark: bool) -> str:
    """CSS declarations of all colours as variables."""
    return "".join(f"--{name}:{pair[dark]};" for name, pair in COLOURS.items())


def heat_colour(share: float) -> str:
    """Colour of a share of the scale, 0 to 1."""
    return HEAT[min(max(int(share * len(HEAT)), 0), len(HEAT) - 1)]
