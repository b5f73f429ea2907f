"""Watts of a fabric from the speeds of its links."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from testbed.model import Floats, Topology
from testbed.power.models import PowerModel


def fabric_watts(topology: Topology, model: PowerModel, speeds: Sequence[str]) -> Floats:
    """(S,) W of each switch: all that is not a port, its hosts' ports at full speed, and its links' as they are.

    Ports without a cable are shut down. A link that is off is shut down at both ends, which an SF-420 needs to save
    anything (section 3.6).

    Args:
        topology: the physical fabric: each member of an aggregated link is a link.
        model: of all its switches.
        speeds: of each link: a key of SPEEDS.
    """
    watts = np.full(topology.switch_count, model.base)
    np.add.at(watts, topology.host_switch, model.port["1G"])
    of_link = np.array([model.port[speed] for speed in speeds], dtype=np.float64)
    for end in (0, 1):
        np.add.at(watts, topology.links[:, end], of_link)
    return watts
