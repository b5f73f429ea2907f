"""Inner loops compiled by numba: arrays and numbers in, arrays and numbers out; they know nothing of the model.

Importing a kernel may import numba, which takes 0.2 s, so the functions that need one import it themselves. Compiled
code is kept on disk: beside the source where that can be written, else in the user's cache folder. Kernels whose time
their arguments bound are interpreted while those are small (jit_unless_small); simulators are always compiled.

What an argument of one of these names is, a docstring tells only where it is something else. S switches, E of them with
hosts, L links, C = 2L channels, N virtual channels, A turns, T trees, V VLANs, R classes, K destination keys:

    ends (E,)                       switches with hosts; hosts (E,), how many each has
    source, target (C,)             switch that a channel leaves, and that it enters
    leaving_start (S + 1,), leaving     channels by the switch they leave, low port first; arriving likewise, they enter
    start (N + 1,), following       virtual channels that may follow each; before_start, before: that it may follow
    entry (N,)                      True where a path may begin
    before, after (A,)              channels of each turn of the fabric, ordered by both
    slot (C,)                       rank of a channel among those that leave its switch; degree, most that leave one
    tree (T, S)                     channel between each switch and the next toward the root; -1 at the root and off it
    toward_root (C,), depth (T, S)  end of a channel that is nearer to the root; hops to the root, from depths()
    tagged (V, L)                   links of each VLAN
    table (R, K)                    next virtual channel of a class, DELIVER or NEVER
"""

from testbed.base.python_isolation import ignore_settings

ignore_settings()  # of the current folder, before anything imports numba
