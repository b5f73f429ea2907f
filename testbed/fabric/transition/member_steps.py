"""Steps where links are aggregated: members of a bundle go off and on, one by one or all, beside paths that change.

A frame goes by a member that the hash of its bundle chooses when it is forwarded. So a member carries nothing more when
no hash chooses it, and what was in its queues has arrived; the others then carry what they would if it had died.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

import numpy as np

from testbed.base.model import Bundles, Routes, Topology, Violation, VlanPlan
from testbed.fabric.topologies.faults import link_called
from testbed.fabric.transition.check import transition_problems
from testbed.fabric.transition.steps import TRANSITION, Step, Transition, make_transition


def make_member_transition(
    topology: Topology,
    bundles: Bundles,
    old: VlanPlan,
    new: VlanPlan,
    *,
    on: Collection[int] = (),
    off: Collection[int] = (),
) -> Transition:
    """As make_transition(), with physical links that go `on` first and `off` last.

    Hashes choose links that came on before paths move onto them, and choose those that go off no more afterwards.
    """
    links_on, links_off = tuple(sorted(on)), tuple(sorted(off))
    members_in, members_out = ([*select_bundled_links(bundles, links)] for links in (links_on, links_off))
    steps = [
        Step("links on", links=links_on),
        Step("members in", links=tuple(members_in)),
        *make_transition(topology, old, new, bundles=bundles).steps,
        Step("members out", links=tuple(members_out)),
        *([Step("drain")] if members_out else []),
        Step("links off", links=links_off),
    ]
    return Transition(old, new, tuple(step for step in steps if step.rules or step.links or step.action == "drain"))


def select_bundled_links(bundles: Bundles, links: Iterable[int]) -> Iterator[int]:
    """Those of some physical links that are in a bundle with others, so that a hash chooses between them."""
    sizes = np.repeat(bundles.sizes, bundles.sizes)
    return (link for link in links if sizes[link] > 1)


def member_transition_problems(
    topology: Topology, bundles: Bundles, transition: Transition, old: Routes, new: Routes, down: Collection[int] = ()
) -> list[Violation]:
    """Walk every state of a transition of make_member_transition(); physical links `down` are off when it begins.

    No hash may choose a link that is off, none may go off that frames still wait for, and no path take a bundle none of
    whose links carries frames.
    """
    out, off, waited_for = set(down), set(down), set[int]()
    dark = _dark(bundles, out | off)
    found: list[Violation] = []
    logical: list[Step] = []
    for number, step in enumerate(transition.steps, 1):
        where = f"step {number}, {step.action}"
        if step.action == "members in":
            out -= set(step.links)
        elif step.action == "members out":
            out |= set(step.links)
            waited_for |= set(step.links)
        elif step.action == "drain":
            waited_for.clear()
        elif step.action == "links off":
            found += _report_links(bundles, waited_for & set(step.links), f"{where}: frames may be in the queues of")
        if step.action in ("links on", "links off"):
            step.carried_out({}, off)
        chosen = set(select_bundled_links(bundles, off - out))
        found += _report_links(bundles, chosen, f"{where}: a hash still chooses a link that is off,")
        # A link without others in its bundle is off with the bundle.
        now = _dark(bundles, off | set(select_bundled_links(bundles, out)))
        logical.append(_logical(step, dark, now))
        dark = now
    whole = replace(transition, steps=tuple(logical))
    return found + transition_problems(topology, whole, old, new, _dark(bundles, set(down)), bundles)


def _logical(step: Step, before: set[int], now: set[int]) -> Step:
    """A step as it is to bundles, by those of which no link carries frames before it and afterwards."""
    if step.rules or step.action == "drain":
        return step
    off = tuple(sorted(now - before))
    return Step("links off", links=off) if off else Step("links on", links=tuple(sorted(before - now)))


def _dark(bundles: Bundles, silent: set[int]) -> set[int]:
    """Logical links all of whose physical ones are silent."""
    starts = bundles.start.tolist()
    return {link for link in range(len(starts) - 1) if silent.issuperset(range(starts[link], starts[link + 1]))}


def _report_links(bundles: Bundles, links: Collection[int], what: str) -> list[Violation]:
    names = (link_called(bundles.wiring, link) for link in sorted(links))
    return [Violation(TRANSITION, f"{what} {name}", (name,)) for name in names]
