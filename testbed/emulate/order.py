"""What a lab has to build, as plain data: the plan with every name, address and command text settled."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from testbed.emulate.calibration import first_guess
from testbed.model import IP_PREFIX, host_ip, host_mac
from testbed.pipeline.text import format_group, format_rule
from testbed.plan import Plan
from testbed.plan.failures import killed_switches
from testbed.plan.rates import at_dilation
from testbed.units import TimeScale


@dataclass(frozen=True, slots=True)
class HostOrder:
    """A host and the port it hangs on."""

    name: str
    ip: str
    mac: str
    switch: str
    port: int


@dataclass(frozen=True, slots=True)
class LinkOrder:
    """A link between two switches."""

    switch_a: str
    port_a: int
    switch_b: str
    port_b: int


@dataclass(frozen=True, slots=True)
class BuildOrder:
    """Everything the agent is told.

    Attributes:
        name: of the lab.
        hosts: in host order.
        switches: names in switch order.
        links: in link order.
        rules: for each switch the lines for `ovs-ofctl add-flows`.
        groups: for each switch the lines for `ovs-ofctl add-groups`.
        link_rate: lab bit/s between switches.
        host_rate: lab bit/s of host links.
        queue_frames: frames a sending port holds.
        datapath: `auto`, `kernel` or `userspace`.
        switch_daemons: how many share the switches, or `auto`.
        static_arp: whether hosts know all addresses beforehand.
        prefix: length of the hosts' IP prefix.
        tagged_trunks: whether frames between switches carry a VLAN tag.
        dilation: links run at their real-world rate divided by this.
        cpu_share: processors that the programs of a host get together; None = no limit.
        controller: name of the one that installs the rules, from a plan file in the lab's folder; None = they are
            installed from `rules`.
        speeds: share of its rate at which a link between switches runs, by the link's number; others at all of it.
        alone: switches that get a daemon each, so that one can be killed.
        stock: run Open vSwitch as it is installed; for benchmarks, which compare with it.
    """

    name: str
    hosts: tuple[HostOrder, ...]
    switches: tuple[str, ...]
    links: tuple[LinkOrder, ...]
    rules: dict[str, list[str]]
    groups: dict[str, list[str]]
    link_rate: float
    host_rate: float
    queue_frames: int
    datapath: str
    switch_daemons: int | str
    static_arp: bool
    prefix: int
    tagged_trunks: bool
    dilation: float
    cpu_share: float | None
    controller: str | None = None
    speeds: dict[str, float] = field(default_factory=dict)
    alone: tuple[str, ...] = ()
    stock: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


def build_order(plan: Plan) -> BuildOrder:
    """Settle names, addresses, rates and rule texts of a proved plan, and a dilation where it names none: a guess.

    Raises:
        VerificationError: the plan is not proved; nothing is built from it.
    """
    plan.require_proof()
    if plan.scenario.lab.dilation == "auto":
        plan = at_dilation(plan, first_guess(plan)[0])
    topology, wiring, scenario = plan.topology, plan.wiring, plan.scenario
    scale = TimeScale(scenario.lab.chosen_dilation)
    alone = killed_switches(plan)
    rules: dict[str, list[str]] = {topology.switch_name(s): [] for s in range(topology.switch_count)}
    for rule in plan.rules:
        rules[topology.switch_name(rule.switch)].append(format_rule(rule))
    groups: dict[str, list[str]] = {name: [] for name in rules}
    for group in plan.groups:
        groups[topology.switch_name(group.switch)].append(format_group(group))
    return BuildOrder(
        name=scenario.name,
        hosts=tuple(
            HostOrder(
                topology.host_name(host),
                host_ip(host),
                host_mac(host),
                topology.switch_name(int(topology.host_switch[host])),
                int(topology.host_port[host]),
            )
            for host in range(topology.host_count)
        ),
        switches=tuple(rules),
        links=tuple(
            LinkOrder(
                topology.switch_name(int(wiring.links[link, 0])),
                int(wiring.out_port[2 * link]),
                topology.switch_name(int(wiring.links[link, 1])),
                int(wiring.out_port[2 * link + 1]),
            )
            for link in range(wiring.link_count)
        ),
        rules=rules,
        groups=groups,
        link_rate=scale.lab_rate(scenario.links.rate),
        host_rate=scale.lab_rate(scenario.links.edge_rate),
        queue_frames=scenario.links.queue_frames,
        datapath="userspace" if alone and scenario.lab.datapath == "auto" else scenario.lab.datapath,
        switch_daemons=scenario.lab.switch_daemons,
        static_arp=scenario.lab.arp == "static",
        prefix=IP_PREFIX,
        tagged_trunks=plan.vlans.tagged_trunks,
        dilation=scale.dilation,
        cpu_share=scenario.lab.processors_a_host,
        controller=None if scenario.lab.controller == "none" else scenario.lab.controller,
        speeds={} if plan.speeds is None else {str(link): share for link, share in enumerate(plan.speeds.tolist())},
        alone=tuple(topology.switch_name(switch) for switch in alone),
    )
