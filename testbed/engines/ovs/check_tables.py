"""What Open vSwitch says of itself, against the plan: addresses learned, rules kept, members that flows would take."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from testbed.base.errors import LabError, WorkloadError
from testbed.base.messages import Deviation, Flow, LinkState, PathTrace
from testbed.base.model import LearningPlan, Rule, host_ip, host_mac
from testbed.engines.lab.counters.counters import BUSY, idle_share, processor_ticks
from testbed.engines.ovs.check_paths import (
    dumped_rules,
    follow_frame,
    installed_problems,
    send_between,
    short_cut_problems,
    state_problems,
)
from testbed.engines.ovs.running_switches import RunningSwitches
from testbed.fabric.openflow.admission import lldp_rules
from testbed.fabric.openflow.compile import learned_rules
from testbed.fabric.openflow.oracle import Oracle
from testbed.fabric.openflow.tables import FORWARDING, UNTAGGED, Priority
from testbed.fabric.routing.paths import path
from testbed.planning import Plan
from testbed.planning.failover.rules import backup_rules
from testbed.planning.failures import first_tables
from testbed.scenario.workloads.link_settings import format_conditions

_ROUNDS = 3
_OUTPUT = re.compile(r"^ +output:(\d+)$", re.MULTILINE)


def verify(plan: Plan, lab: RunningSwitches) -> list[str]:
    """See Session.verify; switches that learn are taught first."""
    teach(plan, lab)
    return walk(plan, lab) or silent_pairs(lab)


def silent_pairs(lab: RunningSwitches) -> list[str]:
    """Ping all pairs; a sentence for each without an answer, which says when the machine had no time for them."""
    before = processor_ticks()
    silent = lab.reach()
    idle = idle_share(before, processor_ticks())
    aside = (
        f" (the machine was busy: its processors were idle for {idle:.0%} of the time; try again when it does less)"
        if idle < BUSY
        else ""
    )
    return [f"{source}→{destination} does not answer a ping{aside}" for source, destination in silent]


def walk(plan: Plan, lab: RunningSwitches, off: Collection[int] | None = None) -> list[str]:
    """See Session.walk."""
    dumped, groups = lab.flows(), lab.groups() if plan.bundles else None
    problems = installed_problems(plan, dumped, groups, off or ())
    if lab.facts.fast_path:
        problems += short_cut_problems(plan, dumped, lab.short_cuts().entries, groups)
    if plan.bundles is not None:  # whose links' states are those of their groups
        return problems
    return problems if off is None else list(dict.fromkeys([*problems, *state_problems([plan], dumped, off)]))


def trace_path(plan: Plan, lab: RunningSwitches, source: int, destination: int) -> PathTrace:
    """See Session.way."""
    return follow_frame(plan, lab.flows(), lab.groups() if plan.bundles else None, source, destination)


# ------------------------------------------------------------------------------------------------------------- learning


def teach(plan: Plan, lab: RunningSwitches) -> str:
    """Run the learning procedure until every switch knows every address in every VLAN; nothing for other plans.

    Returns:
        how the frames were made; empty where nothing is learned.

    Raises:
        LabError: addresses are still unknown after three rounds.
    """
    if not isinstance(plan.vlans, LearningPlan):
        return ""
    unknown: list[str] = []
    for _ in range(_ROUNDS):
        way = lab.learn(plan.vlans.vlan_ids.tolist(), datagrams=by_datagrams(plan))
        unknown = unknown_addresses(plan, lab.flows())
        if not unknown:
            return way
    raise LabError(
        f"after {_ROUNDS} rounds of the learning procedure {len(unknown)} addresses are unknown or known wrongly: "
        f"{unknown[0]}"
    )


def by_datagrams(plan: Plan) -> bool:
    """Whether hosts teach as in the paper, by datagrams, and not by bare frames."""
    return getattr(plan.scenario.assignment, "procedure", "quick") == "paper"


def unknown_addresses(plan: Plan, dumped: Mapping[str, Sequence[str]]) -> list[str]:
    """A sentence for each address that a switch does not know in a VLAN, or knows at another port.

    `dumped`: switch → lines of `ovs-ofctl --no-stats --no-names dump-flows`.
    """
    assert isinstance(plan.vlans, LearningPlan)
    rules, problems = dumped_rules(plan.topology, dumped)
    known = {_place(rule): rule.actions for rule in rules if _is_entry(rule)}
    return problems + [
        f"{plan.topology.switch_name(rule.switch)} does not know the way to {dict(rule.match)['dl_dst']} in VLAN "
        f"{dict(rule.match)['dl_vlan']}"
        for rule in learned_rules(plan.topology, plan.vlans, plan.bundles)
        if known.get(_place(rule)) != rule.actions
    ]


def _is_entry(rule: Rule) -> bool:
    """Whether a rule is the entry of an address, given or learned."""
    return (rule.table, rule.priority) == (FORWARDING.number, Priority.STATIC_ENTRY)


def _place(rule: Rule) -> tuple[object, ...]:
    return (rule.switch, frozenset(rule.match))


# ---------------------------------------------------------------------------------------------------------------- rules


def deviations(plan: Plan, lab: RunningSwitches) -> list[Deviation]:
    """See Session.deviations.

    Shaping that changed, and rules that a controller did not keep, make figures void. A controller that has ended, or
    switches that it does not reach, leave the rules as they were.
    """
    found = [Deviation(True, f"shaping changed: {problem}") for problem in lab.shaping_problems()]
    off = lab.short_cuts().off if lab.facts.fast_path else {}
    found += [Deviation(False, f"the fast path of {switch} was off: {why}") for switch, why in off.items()]
    found += changed_links(plan, lab.link_states(), controlled=lab.facts.controller is not None)
    if lab.facts.controller is None:
        return found
    rules, problems = dumped_rules(plan.topology, lab.flows())
    if isinstance(plan.vlans, LearningPlan):  # which addresses are known is watched by what is flooded
        rules = [rule for rule in rules if not _is_entry(rule)]
    changed = len(set(rules) ^ expected_rules(plan)) + len(problems)
    if changed:
        found.append(Deviation(True, f"{changed} rules differ from the plan's after the loads"))
    return found + of_controller(lab)


def of_controller(lab: RunningSwitches) -> list[Deviation]:
    """A controller that has ended, or switches that it does not reach."""
    try:
        status = lab.controller()
    except LabError as error:
        return [Deviation(False, str(error))]
    late = [f"{name} ({state.state})" for name, state in status.switches.items() if state.state != "in step"]
    if not late:
        return []
    return [Deviation(False, f"{len(late)} switches are not in step with the controller: {', '.join(late[:4])}")]


def changed_links(plan: Plan, states: Mapping[int, LinkState], *, controlled: bool) -> list[Deviation]:
    """Links that are not as planned after the loads, whose own changes have been undone: somebody else's wish.

    Args:
        plan: the plan.
        states: of such links.
        controlled: whether there is a controller, which may have switched links off.
    """
    found = []
    for link, state in states.items():
        words = format_conditions(state.rate, state.delay or None, state.loss or None)
        words += [] if state.up or controlled else ["down"]
        if words:
            name = plan.wiring.channel_name(2 * link).replace("→", "-")
            sentence = f"{name} was changed from outside the scenario and is not as planned: {', '.join(words)}"
            found.append(Deviation(True, sentence))
    return found


def expected_rules(plan: Plan) -> set[Rule]:
    """What the lab's controller installs while nothing is dead: the plan's rules, and those of one that moves paths."""
    expected = set(plan.rules)
    tables = first_tables(plan)
    if tables is None:
        return expected
    return expected | {*backup_rules(plan.topology, tables), *lldp_rules(plan.topology.switch_count)}


# -------------------------------------------------------------------------------------------------------------- members


def taken_channels(
    plan: Plan, lab: RunningSwitches, flows: Sequence[Flow]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """See Session.taken_channels."""
    bundles = plan.bundles
    if bundles is None:
        raise LabError("the links of this lab are not aggregated")
    rules, learns = list(plan.rules), isinstance(plan.vlans, LearningPlan)
    if isinstance(plan.vlans, LearningPlan):
        rules += learned_rules(plan.topology, plan.vlans, bundles)
    oracle = Oracle(plan.topology, rules, bundles, plan.groups)
    asked: list[tuple[str, str]] = []
    for flow in flows:
        asked += _questions(plan, oracle, flow, flow.source, flow.destination)
        if flow.protocol == "tcp":
            asked += _questions(plan, oracle, flow, flow.destination, flow.source)
    answers = iter(zip(asked, lab.trace(asked), strict=True))

    def list_taken(start: int, end: int) -> tuple[int, ...]:
        channels = []
        for channel in path(plan.topology, plan.routes, start, end):
            (switch, frame), text = next(answers)
            ports = {int(port) for port in _OUTPUT.findall(text)}
            members = {int(bundles.wiring.out_port[member]): member for member in bundles.channels(channel)}
            if learns and len(ports) > 1:  # flooded, for an address that has been forgotten: also by the path's bundle
                ports &= members.keys()
            if len(ports) != 1 or not ports <= members.keys():
                shown = " and ".join(map(str, sorted(ports))) or "none"
                wanted = " or ".join(map(str, members))
                raise WorkloadError(f"{switch} sends {frame} by port {shown} instead of {wanted}")
            channels.append(members[ports.pop()])
        return tuple(channels)

    return [
        (
            list_taken(flow.source, flow.destination),
            list_taken(flow.destination, flow.source) if flow.protocol == "tcp" else (),
        )
        for flow in flows
    ]


def _questions(plan: Plan, oracle: Oracle, flow: Flow, start: int, end: int) -> list[tuple[str, str]]:
    """Switch and frame for each hop of a path; the member it arrives by makes no difference."""
    topology = plan.topology
    ports = (flow.source_port, flow.destination_port)
    come_from, go_to = ports if start == flow.source else ports[::-1]
    frame = (
        f"{flow.protocol},dl_src={host_mac(start)},dl_dst={host_mac(end)},nw_src={host_ip(start)},nw_dst={host_ip(end)},"
        f"{flow.protocol}_src={come_from},{flow.protocol}_dst={go_to}"
    )
    own = plan.vlans.host_tag(start, end)
    in_port, tag = int(topology.host_port[start]), "" if own is None else f",dl_vlan={own},dl_vlan_pcp=0"
    questions = []
    walked = send_between(plan, oracle, start, end)
    for channel, (vlan, priority) in zip(walked.channels, walked.tags, strict=True):
        switch = topology.switch_name(int(topology.channel_source[channel]))
        questions.append((switch, f"in_port={in_port},{frame}{tag}"))
        in_port = int(topology.out_port[channel ^ 1])
        tag = "" if vlan == UNTAGGED else f",dl_vlan={vlan},dl_vlan_pcp={priority}"
    return questions
