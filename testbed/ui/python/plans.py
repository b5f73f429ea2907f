"""Plan a fabric from Python; ask the plan for paths, loads, proofs, graphs and drawings."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.base.errors import InputError, VerificationError, did_you_mean
from testbed.base.model import Floats, Violation
from testbed.ui.python.optional_libraries import library

if TYPE_CHECKING:
    import networkx
    import pandas

    from testbed.experiments.analyse import Explanation
    from testbed.planning import Plan
    from testbed.planning.summary import PlanFigures

# Rows of a table of paths; more would take minutes and gigabytes.
MAX_PATHS = 1_000_000


def plan_fabric(
    scenario: str | Path | Mapping[str, Any], settings: Mapping[str, Any] | None, *, trust: bool
) -> PlannedFabric:
    """Plan a fabric and prove it, as `testbed.plan` says."""
    from testbed.engines.lab.hosts.available_memory import require_room
    from testbed.planning import make_plan
    from testbed.scenario import find_scenario, load_scenario, parse_scenario
    from testbed.scenario.named_files import EVERY_KEY

    texts = [f"{key}={json.dumps(value, default=list)}" for key, value in (settings or {}).items()]
    if isinstance(scenario, Mapping):
        # JSON is YAML; the name is that of a file in the current folder, as paths in a scenario are beside its file.
        blocks = parse_scenario(json.dumps(scenario, default=list), "python", texts, trust=trust, named=[EVERY_KEY])
        return PlannedFabric(make_plan(blocks, require_room))
    file = scenario if isinstance(scenario, Path) else find_scenario(scenario)
    return PlannedFabric(make_plan(load_scenario(file, texts, trust=trust), require_room))


@dataclass(frozen=True, slots=True)
class Proof:
    """What verification found."""

    passed: bool  # whether that is what the scenario expects: nothing, or exactly the declared deadlock
    deadlock_free: bool  # whether the channel dependency graph has no cycle
    violations: tuple[Violation, ...]  # invariants that do not hold, each with a witness

    def __bool__(self) -> bool:
        """Whether it passed."""
        return self.passed

    def __repr__(self) -> str:
        """One line for all that holds, and one for each invariant that does not."""
        deadlock = "deadlock free" if self.deadlock_free else "can deadlock"
        word = "proved" if self.passed else "NOT PROVED"
        return "\n".join([f"{word}: {deadlock}", *(f"  {one.invariant}: {one.sentence}" for one in self.violations)])


@dataclass(frozen=True, slots=True, eq=False)
class ChannelLoads:
    """How a pattern of traffic spreads over the channels."""

    pattern: str  # its name
    channels: tuple[str, ...]  # (C,) names such as s1→s2
    flows: Floats  # (C,) flows on each channel
    demand: Floats  # (C,) what each carries, in units of the rate at which every host that sends injects
    # injection rate at which the fullest link is full, a host's included, as a share of the rate of a link between
    # switches; None where nobody sends
    saturation: float | None

    @property
    def max(self) -> int:
        """Flows on the fullest channel."""
        return int(self.flows.max(initial=0))

    def frame(self) -> pandas.DataFrame:
        """A row a channel: channel, flows, demand."""
        made = library("pandas", "frame()")
        return made.DataFrame({"channel": self.channels, "flows": self.flows.astype(int), "demand": self.demand})

    def __repr__(self) -> str:
        """The figures that are asked for first."""
        bound = "" if self.saturation is None else f", full at injection rate {self.saturation:.4g}"
        return f"<loads of {self.pattern}: at most {self.max} flows on a channel{bound}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlannedFabric:
    """A plan, as tb.plan() returns it.

    Hosts and switches are named as in reports: h1, s1.
    """

    core: Plan  # with arrays and numbers, as the modules of testbed use it

    @property
    def name(self) -> str:
        """Of the scenario."""
        return self.core.scenario.name

    @property
    def digest(self) -> str:
        """Equal digests are equal fabrics."""
        return self.core.digest

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of all hosts."""
        topology = self.core.topology
        return tuple(map(topology.host_name, range(topology.host_count)))

    @property
    def switches(self) -> tuple[str, ...]:
        """Names of all switches."""
        topology = self.core.topology
        return tuple(map(topology.switch_name, range(topology.switch_count)))

    def summary(self) -> PlanFigures:
        """The figures that `testbed plan --format json` prints."""
        from testbed.planning.summary import summary

        return summary(self.core)

    def prove(self) -> Proof:
        """What verification found of delivery, trees, deadlock freedom, members and limits."""
        core = self.core
        return Proof(core.is_proved, core.deadlock_free, core.violations)

    def require_proof(self) -> None:
        """Go on only with a proved plan.

        Raises:
            VerificationError: an invariant is broken, or a declared deadlock is not there.
        """
        self.core.require_proof()

    def path(self, source: str, destination: str) -> tuple[str, ...]:
        """The switches from one host to another, in order.

        Raises:
            InputError: there is no such host.
            VerificationError: the plan has no path for the pair.
        """
        return self._switches(self._host(source), self._host(destination))

    def explain(self, source: str, destination: str) -> Explanation:
        """A path hop by hop with its ports, VLANs and rules, and why it is no shorter, as `testbed explain` has it."""
        from testbed.experiments.analyse import explain

        return explain(self.core, source, destination)

    def paths_frame(self, source: str | None = None) -> pandas.DataFrame:
        """A row for each ordered pair of hosts: source, destination, hops between switches, path as text.

        `source` is the only host whose paths are wanted; None = all.

        Raises:
            InputError: there are too many pairs; ask for those of one source.
        """
        made = library("pandas", "paths_frame()")
        count = self.core.topology.host_count
        sources = range(count) if source is None else [self._host(source)]
        if len(sources) * (count - 1) > MAX_PATHS:
            sentence = f"there are {count * (count - 1):,} paths and a table holds {MAX_PATHS:,}; give a source"
            raise InputError.one("paths_frame()", f'{sentence}, such as paths_frame("h1")')
        name, rows = self.core.topology.host_name, []
        for one in sources:
            for other in range(count):
                if one != other:
                    path = self._switches(one, other)
                    rows.append((name(one), name(other), len(path) - 1, " ".join(path)))
        return made.DataFrame(rows, columns=["source", "destination", "hops", "path"])

    def loads(self, pattern: str = "all_to_all") -> ChannelLoads:
        """Flows of a traffic pattern on each channel; with ecmp the mean over all choices.

        Raises:
            InputError: there is no such pattern, or not for this number of hosts.
        """
        from testbed.experiments.analyse import check_patterns
        from testbed.experiments.analyse.channel_load import load_of, pattern_problem

        core = self.core
        problems = check_patterns([pattern])
        wrong = None if problems else pattern_problem(core.topology, pattern, core.scenario.lab.seed)
        if problems or wrong is not None:
            raise InputError([wrong] if wrong is not None else problems)
        members = None if core.bundles is None else core.bundles.sizes.repeat(2)
        links = core.scenario.links
        found = load_of(
            core.topology, core.routes, pattern, core.scenario.lab.seed, members,
            host_link=links.edge_rate / links.rate, expected=True,
        )  # fmt: skip
        names = tuple(map(core.topology.channel_name, range(len(core.topology.channel_source))))
        return ChannelLoads(pattern, names, found.flows, found.demand, found.saturation)

    def graph(self) -> networkx.MultiGraph:
        """Switches, hosts and every physical link.

        Nodes have `kind` (switch or host), and switches `pos`, where to draw them. Links have `kind` (trunk or edge),
        `rate` in bit/s and `ports`, the port at each end by its name.
        """
        made = library("networkx", "graph()")
        wiring, links = self.core.wiring, self.core.scenario.links
        graph = made.MultiGraph(name=self.name)
        for number, name in enumerate(self.switches):
            graph.add_node(name, kind="switch", pos=tuple(wiring.positions[number].tolist()))
        speeds = [1.0] * wiring.link_count if self.core.speeds is None else self.core.speeds.tolist()
        for link, ends in enumerate(wiring.links.tolist()):
            one, other = map(wiring.switch_name, ends)
            ports = {one: int(wiring.out_port[2 * link]), other: int(wiring.out_port[2 * link + 1])}
            graph.add_edge(one, other, kind="trunk", rate=links.rate * speeds[link], ports=ports)
        for host, name in enumerate(self.hosts):
            switch = wiring.switch_name(int(wiring.host_switch[host]))
            graph.add_node(name, kind="host")
            ports = {switch: int(wiring.host_port[host])}
            graph.add_edge(name, switch, kind="edge", rate=links.edge_rate, ports=ports)
        return graph

    def save(self, file: str | Path) -> Path:
        """Write the whole plan as JSON, as `testbed plan --output` does; returns the file."""
        from testbed.base.files import write_whole
        from testbed.planning.store import plan_to_json

        write_whole(Path(file), plan_to_json(self.core).encode())
        return Path(file)

    def _host(self, name: str) -> int:
        names = self.hosts
        if name in names:
            return names.index(name)
        raise InputError.one("host", f'{self.name} has no host "{name}".{did_you_mean(name, names)}')

    def _switches(self, source: int, destination: int) -> tuple[str, ...]:
        from testbed.fabric.routing.paths import path

        topology = self.core.topology
        start, end = (int(topology.host_switch[host]) for host in (source, destination))
        found = path(topology, self.core.routes, source, destination)
        if start != end and not found:
            pair = f"{topology.host_name(source)} to {topology.host_name(destination)}"
            raise VerificationError(f"the plan has no path from {pair}", self.core.scenario.source)
        return tuple(map(topology.switch_name, [start, *topology.channel_target[list(found)].tolist()]))

    def __repr__(self) -> str:
        """One line."""
        return f"<plan {self.name}: {self._words()}>"

    def _words(self) -> str:
        core = self.core
        parts = (
            f"{core.scenario.topology_kind}, {core.scenario.routing_kind}, {core.scenario.assignment_kind}",
            f"{core.topology.switch_count} switches, {core.wiring.link_count} links, {core.topology.host_count} hosts",
            repr(self.prove()).partition("\n")[0],
        )
        return "; ".join(parts)

    def _repr_html_(self) -> str:
        """The drawing of the fabric, where it is small enough, over the line of repr()."""
        from testbed.experiments.report.drawing import MAX_SWITCHES, draw_topology

        small = self.core.topology.switch_count <= MAX_SWITCHES
        drawing = draw_topology(self.core.wiring, f"plan-{self.digest}") if small else ""
        return f"<div>{drawing}<p><b>{html.escape(self.name)}</b>: {html.escape(self._words())}</p></div>"
