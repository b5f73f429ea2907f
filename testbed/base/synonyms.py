"""Words that people look for by another name, or in vain: each leads to what is nearest, or to a sentence."""

from __future__ import annotations

from collections.abc import Iterable

# What a word is called here, by the word without its underscores and signs.
_CALLED = {
    "clos": "leaf_spine", "foldedclos": "leaf_spine", "spineleaf": "leaf_spine", "leafspine": "leaf_spine",
    "karyfattree": "fat_tree_pods", "fattreek": "fat_tree_pods", "pods": "fat_tree_pods", "threetier": "fat_tree_pods",
    "dragonfly+": "dragonfly_plus", "megafly": "dragonfly_plus", "rail": "rail_optimised", "rails": "rail_optimised",
    "railoptimized": "rail_optimised", "fullmesh": "complete", "star": "flat", "chain": "mesh", "line": "mesh",
    "slimfly": "slim_fly", "multipath": "ecmp", "hash": "ecmp", "8021aq": "spb",
    "shortestpath": "dfsssp", "minimal": "dfsssp", "rstp": "stp", "mstp": "stp", "spanningtree": "stp",
    "vlb": "valiant",
    "allreduce": "ring_all_reduce", "reducescatter": "ring_reduce_scatter", "allgather": "ring_all_gather",
    "incast": "hotspot", "alltoall": "all_to_all", "a2a": "all_to_all", "permutation": "pairwise", "random": "uniform",
}  # fmt: skip
_CONGESTION = (
    "is not modelled; testbed flows simulates ECN marks with DCQCN, and flow_control: pfc pauses: docs/lossless.md"
)
_MARKS = "is simulated by testbed flows, on any scenario, and not in labs: docs/lossless.md"
_TRANSPORT = (
    "is not modelled: hosts send TCP, UDP or raw frames, and simulated ones frames that nothing loses under pfc"
)
_CHOICE = "is not planned: routing ecmp proves all choices, and testbed flows --next-hop makes them: docs/lossless.md"
_NOT_MODELLED = {
    **dict.fromkeys(("dctcp", "qcn", "hpcc", "timely", "swift"), _CONGESTION),
    **dict.fromkeys(("ecn", "red", "wred", "dcqcn", "cnp"), _MARKS),
    **dict.fromkeys(("roce", "rocev2", "rdma", "iwarp", "infiniband", "verbs"), _TRANSPORT),
    **dict.fromkeys(("spray", "spraying", "adaptive", "flowlet", "flowlets", "conga", "ugal", "dlb"), _CHOICE),
}


def find_looked_for(word: str, known: Iterable[str]) -> str:
    """Return ` Did you mean "x"?` for a word that is called otherwise, or why there is nothing; else nothing."""
    plain = "".join(sign for sign in str(word)[:40].lower() if sign.isalnum() or sign == "+")
    called = _CALLED.get(plain, "")
    if called and called in set(known):
        return f' Did you mean "{called}"?'
    return f" {plain.upper()} {_NOT_MODELLED[plain]}." if plain in _NOT_MODELLED else ""
