"""From a proved plan to a running lab: every name, address and command text is settled, then the agent is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from typing import TypeVar

from testbed.base.model import IP_PREFIX, HostTaggedPlan, Rule, host_ip, host_mac
from testbed.base.units import TimeScale
from testbed.engines.lab.build_order import BuildOrder, HostOrder, LinkOrder
from testbed.engines.lab.control.client import LabClient, ignore_progress
from testbed.engines.lab.control.launch import Namespaces, start_namespaces
from testbed.engines.lab.control.operation import Progress
from testbed.engines.lab.hosts.interface_names import PLAN
from testbed.engines.local_machine import user_namespace
from testbed.engines.local_machine.calibration import first_guess
from testbed.engines.local_machine.rootless_losses import warn_of_losses
from testbed.fabric.openflow.admission import from_own_address
from testbed.fabric.openflow.rule_text import format_group, format_rule
from testbed.planning import Plan
from testbed.planning.failures import killed_switches, prepare_controller
from testbed.planning.rates import at_dilation
from testbed.planning.store import plan_to_json

Lab = TypeVar("Lab", bound=LabClient)


def build_order(plan: Plan, *, model: bool = False) -> BuildOrder:
    """Settle names, addresses, rates and rule texts of a proved plan, and a dilation where it names none: a guess.

    Where the switches are a model there are no rules.

    Raises:
        VerificationError: the plan is not proved; nothing is built from it.
    """
    plan.require_proof()
    plan.require_tables()
    if plan.scenario.lab.dilation == "auto":
        plan = at_dilation(plan, first_guess(plan)[0])
    topology, wiring, scenario = plan.topology, plan.wiring, plan.scenario
    scale = TimeScale(scenario.lab.chosen_dilation)
    alone = killed_switches(plan)
    rules: dict[str, list[str]] = {topology.switch_name(s): [] for s in range(topology.switch_count)}
    for rule in () if model else _rules(plan):
        rules[topology.switch_name(rule.switch)].append(format_rule(rule))
    groups: dict[str, list[str]] = {name: [] for name in rules}
    for group in () if model else plan.groups:
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
                *_tags(plan, host),
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
        managers=scenario.lab.managers,
        speeds={} if plan.speeds is None else dict(enumerate(plan.speeds.tolist())),
        fast_path=scenario.lab.fast_path,
        model=model,
        mtu=scenario.links.mtu,
        alone=tuple(topology.switch_name(switch) for switch in alone),
        host_access=scenario.lab.host_access,
        tso=scenario.lab.tso != "off",
        port_security=scenario.lab.port_security,
    )


def _tags(plan: Plan, host: int) -> tuple[tuple[int, ...], dict[str, int]]:
    """VLANs in which a host has interfaces, and the one it sends to each other host in; none where switches tag."""
    vlans = plan.vlans
    if not isinstance(vlans, HostTaggedPlan) or not vlans.takes_tags(host):
        return (), {}
    own = tuple(vlans.vlan_ids[vlans.tagged_hosts[:, host]].tolist())
    to = vlans.vlan_ids[vlans.pair_vlan[host]].tolist()
    return own, {host_ip(other): vlan for other, vlan in enumerate(to) if other != host}


def _rules(plan: Plan) -> Iterable[Rule]:
    """The rules that are installed: with port security those of hosts' ports are narrower than the plan's."""
    if not plan.scenario.lab.port_security:
        return plan.rules
    topology = plan.topology
    places = zip(topology.host_switch.tolist(), topology.host_port.tolist(), strict=True)
    return from_own_address(plan.rules, {place: host_mac(host) for host, place in enumerate(places)})


def build_lab(plan: Plan, *, keep: bool = False, progress: Progress = ignore_progress) -> LabClient:
    """Build the lab of a proved plan, on Open vSwitch; see build_with()."""
    return build_with(plan, LabClient, keep=keep, progress=progress)


def build_with(
    plan: Plan, connect: Callable[[Namespaces], Lab], *, keep: bool, progress: Progress, model: bool = False
) -> Lab:
    """Build the lab of a proved plan.

    Where the scenario leaves the dilation to the machine, `facts.dilation` is a guess.

    Args:
        plan: without verification's blessing nothing is started.
        connect: makes the client of a lab whose process 1 runs.
        keep: let the lab outlive this process once it is registered.
        progress: called with the name of each step.
        model: whether switches are the model that `connect` puts into the lab, and not Open vSwitch.

    Raises:
        VerificationError: the plan is not proved.
        CapabilityError: this machine cannot run a lab.
        LabError: building failed; nothing is left.
    """
    plan.require_proof()
    plan.require_tables()
    prepare_controller(plan)

    @cache
    def texts() -> tuple[BuildOrder, str]:
        watchdog = plan.scenario.simulator.watchdog or 0.0
        return replace(build_order(plan, model=model), watchdog=watchdog / 1000), plan_to_json(plan)

    user_namespace.require()
    warn_of_losses(model=model)
    namespaces = start_namespaces(keep=keep, name=plan.scenario.name, meanwhile=texts)
    order, stored = texts()
    with ExitStack() as undo:
        undo.callback(namespaces.end)
        lab = connect(namespaces)
        undo.callback(lab.close)
        lab.write(PLAN, stored)
        lab.build(order, progress)
        undo.pop_all()
    return lab
