"""The walk over explicit paths: each fault by its own number."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.fabric.kernels import path_checks

# A line of three switches: channels 0: 0→1, 1: 1→0, 2: 1→2, 3: 2→1; a virtual channel is layer · 4 + channel.
SOURCE, TARGET = np.array([0, 1, 1, 2], dtype=np.int32), np.array([1, 0, 2, 1], dtype=np.int32)


def walked(hop, *, turns=None, entry=None, may_be_empty=False):
    """What is wrong with the only path, from switch 0 to switch 2, in two layers; turns: allowed followers."""
    hop = np.array(hop, dtype=np.int32)
    lists = [sorted((turns or {}).get(channel, ())) for channel in range(8)]
    start = np.concatenate([[0], np.cumsum([len(one) for one in lists])]) if turns is not None else np.zeros(0)
    status, taken = path_checks.check_paths(
        np.array([0, 0, len(hop), len(hop), len(hop)], dtype=np.int64), hop, np.array([0, 2], dtype=np.int32),
        SOURCE, TARGET, 2, np.array([0, 0, 1, 0], dtype=np.int32), 2, start.astype(np.int64),
        np.array([one for several in lists for one in several], dtype=np.int32),
        np.isin(np.arange(8), [0] if entry is None else entry), may_be_empty,
    )  # fmt: skip
    return int(status[0, 1]), {(int(a), int(b)) for a, b in np.argwhere(taken)}


@pytest.mark.parametrize(("hop", "found"), [
    ([0, 2], path_checks.FINE),
    ([0, 6], path_checks.FINE),
    ([4, 2], path_checks.FINE),
    ([0, 1, 0, 2], path_checks.U_TURN),
    ([0, 5, 0, 2], path_checks.U_TURN),  # also where it changes the layer
    ([4, 1, 0, 2], path_checks.U_TURN),
    ([0, 2, 7, 6], path_checks.U_TURN),
    ([0], path_checks.BROKEN),
    ([2], path_checks.BROKEN),
    ([0, 3], path_checks.BROKEN),
    ([0, 8], path_checks.BROKEN),
    ([-1], path_checks.BROKEN),
    ([], path_checks.NO_PATH),
])  # fmt: skip
def test_a_path_is_walked_to_its_end(hop, found):
    assert walked(hop)[0] == found


def test_turns_are_those_taken_and_allowed():
    assert walked([0, 6]) == (path_checks.FINE, {(0, 1 * 2 + 1)})  # by layer and rank of the next hop
    allowed = {0: [2, 6], 4: [6]}
    for hop, found in (
        ([0, 2], path_checks.FINE),
        ([0, 6], path_checks.FINE),
        ([4, 6], path_checks.WRONG_START),
        ([4, 2], path_checks.WRONG_START),
    ):
        assert walked(hop, turns=allowed)[0] == found
    assert walked([4, 6], turns=allowed, entry=[4])[0] == path_checks.FINE
    assert walked([4, 2], turns=allowed, entry=[4])[0] == path_checks.FORBIDDEN
    assert walked([0, 2], turns={0: [6]})[0] == path_checks.FORBIDDEN
    assert walked([0, 2], turns={0: [1]})[0] == path_checks.FORBIDDEN


def test_backup_paths_may_be_missing():
    assert walked([], may_be_empty=True)[0] == path_checks.FINE
