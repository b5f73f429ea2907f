"""What switches and fabrics take, and how long ports need to change (Koibuchi et al. 2011, Tables 2 and 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from testbed.base.model import Floats, Topology

# Speeds of a link as shares of its full rate, by the names of the paper; 0 is a port that is shut down.
SPEEDS: dict[str, float] = {"1G": 1.0, "100M": 0.1, "10M": 0.01, "off": 0.0}


@dataclass(frozen=True, slots=True)
class PowerModel:
    """One model of switch.

    The paper found no difference between an idle port and a busy one, nor between a port that is shut down and one
    without a cable.
    """

    name: str  # as printed on it
    base: float  # W of the switch with all ports shut down
    port: Mapping[str, float]  # speed → W of one port
    off_on: float  # s for which a link is gone when a port is shut down and resumed
    speed_change: Mapping[tuple[str, str], float]  # (from, to) → s for which a link is gone when its speed changes


def _model(name: str, base: float, port: tuple[float, float, float], seconds: tuple[float, ...]) -> PowerModel:
    """Rows of Table 2 (1G, 100M, 10M) and Table 6 (off/on, then the six changes in the paper's order)."""
    changes = (("1G", "100M"), ("100M", "1G"), ("100M", "10M"), ("10M", "100M"), ("1G", "10M"), ("10M", "1G"))
    watts = {**dict(zip(("1G", "100M", "10M"), port, strict=True)), "off": 0.0}
    return PowerModel(name, base, watts, seconds[0], dict(zip(changes, seconds[1:], strict=True)))


POWER_MODELS: dict[str, PowerModel] = {
    model.name: model
    for model in (
        _model("PC5324", 15.0, (1.2, 0.9, 0.5), (3.2, 4.1, 2.4, 2.3, 3.3, 2.5, 2.4)),
        _model("PC6224", 42.5, (2.0, 0.9, 0.8), (2.6, 2.8, 5.7, 2.6, 2.6, 2.6, 5.7)),
        _model("PC6248", 56.8, (2.1, 1.3, 1.1), (2.2, 2.7, 3.3, 2.8, 3.1, 2.5, 2.3)),
        _model("SF-420", 32.6, (1.0, 0.2, 0.0), (1.2, 2.7, 2.5, 2.4, 2.3, 2.8, 2.3)),
    )
}


def fabric_watts(topology: Topology, model: PowerModel, speeds: Sequence[str]) -> Floats:
    """(S,) W of each switch: all that is not a port, its hosts' ports at full speed, and its links' as they are.

    Ports without a cable are shut down. A link that is off is shut down at both ends, which an SF-420 needs to save
    anything (section 3.6).

    `speeds` are keys of SPEEDS, one a link; each member of an aggregated link is a link.
    """
    watts = np.full(topology.switch_count, model.base)
    np.add.at(watts, topology.host_switch, model.port["1G"])
    of_link = np.array([model.port[speed] for speed in speeds], dtype=np.float64)
    for end in (0, 1):
        np.add.at(watts, topology.links[:, end], of_link)
    return watts
