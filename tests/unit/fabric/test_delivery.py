"""What the walk of all pairs says of channels."""

from __future__ import annotations

import numpy as np

from testbed.fabric.verify.delivery import Walk, dependencies
from tests.fabrics import topology_of


def test_channels_depend_on_those_that_some_path_takes_next():
    none = np.zeros(3, dtype=np.int32)
    hops = np.array([[0, 4, 3], [2, 0, -1], [5, -1, -1]], dtype=np.int32)
    walk = Walk(none, none, hops, np.ones(3, dtype=bool))
    found = dependencies(topology_of("mesh", sizes=[4]), walk)
    assert found.tolist() == [[0, 2], [2, 5], [4, 0]]
    assert dependencies(topology_of("mesh", sizes=[4]), Walk(none, none, hops[:1], walk.delivered)).shape == (0, 2)
