"""Whether a scenario's loads and lab go with its topology, assignment and switches, before anything is built."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.base.errors import Problem
from testbed.base.model import Topology
from testbed.base.units import format_rate
from testbed.dataplane.predict.wire_overhead import UDP_HEADERS
from testbed.fabric.traffic import PatternError, flows, is_weighted
from testbed.fabric.verify.limits import SWITCH_MODELS, check_ports
from testbed.planning.failover.events import Change, changes_of
from testbed.scenario import Scenario
from testbed.scenario.engines import ENGINES, carrying, list_unsupported_keys, supports_key
from testbed.scenario.plugins import origin_of
from testbed.scenario.spec import MOST_MTU, SLOWEST_LAB_LINK
from testbed.scenario.workloads import WORKLOADS
from testbed.scenario.workloads.spec import events_key, events_of
from testbed.scenario.workloads.timeline import Event


def lab_problems(scenario: Scenario, topology: Topology) -> list[Problem]:
    """What is wrong with loads, addresses, switch daemons, controller and ports, known before anything is routed."""
    model = SWITCH_MODELS[scenario.switch_model] if scenario.switch_model else None
    ports = check_ports(topology, model) if model is not None else []
    blocks = {"links": scenario.links, "lab": scenario.lab, "vm": scenario.vm, "simulator": scenario.simulator}
    return [
        *list_unsupported_keys(scenario.engine, blocks),
        *load_problems(scenario, topology),
        *event_problems(scenario, topology),
        *address_problems(scenario),
        *daemon_problems(scenario, topology),
        *controller_problems(scenario),
        *security_problems(scenario),
        *learning_problems(scenario),
        *(Problem("switch_model", violation.sentence) for violation in ports),
    ]


def load_problems(scenario: Scenario, topology: Topology) -> list[Problem]:
    """Every load whose pattern does not exist for this number of hosts, or gives no flow; ranks that do not fit."""
    if topology.host_count < 2:
        hosts = "1 host" if topology.host_count else "no host"
        sentence = f"a load needs two hosts or more and this topology has {hosts}"
        return [Problem("workloads", sentence)] if scenario.workloads else []
    found = []
    for number, load in enumerate(scenario.workloads):
        problems = WORKLOADS[load.kind].check_hosts(load.spec, topology)
        found += [Problem(f"workloads.{number}.{problem.key}", problem.sentence) for problem in problems]
        found += _too_long(scenario, number)
        pattern = getattr(load.spec, "pattern", None)
        if pattern is None:
            continue
        place = f"workloads.{number}.pattern"
        if is_weighted(pattern) and scenario.links.aggregate:
            sentence = "gives pairs different amounts, which no hash over aggregated links keeps; make them equal"
            found.append(Problem(place, sentence))
        try:
            if not flows(pattern, topology, scenario.lab.seed, amounts=True):
                count = topology.host_count
                found.append(Problem(place, f'"{pattern}" maps each of {count} hosts to itself; use another pattern'))
        except PatternError as error:
            found.append(Problem(place, str(error)))
    return found


def _too_long(scenario: Scenario, number: int) -> list[Problem]:
    """Datagrams of a load that do not fit a frame."""
    load, mtu = scenario.workloads[number], scenario.links.mtu
    most, found = mtu - UDP_HEADERS, []
    for key, size in WORKLOADS[load.kind].datagrams(load.spec).items():
        if size > most:
            sentence = f"should be {most} or less, not {size}: a frame holds {mtu} bytes (links.mtu)"
            if scenario.carrier == "realtime" and size + UDP_HEADERS <= MOST_MTU:
                sentence += f"; make it smaller, or set links.mtu: {size + UDP_HEADERS}"
            found.append(Problem(f"workloads.{number}.{key}", sentence))
    return found


def event_problems(scenario: Scenario, topology: Topology) -> list[Problem]:
    """Events that name unknown or already failed elements, or need a controller that moves paths, or other links."""
    found: list[Problem] = []
    for number, load in enumerate(scenario.workloads):
        events, place = events_of(load.spec), f"workloads.{number}.{events_key(load.spec)}"
        fails = any(event.action != "link" for event in events)
        if not events:
            continue
        if not ENGINES[scenario.engine].changes:
            what = "links and switches do not fail" if fails else "links do not change"
            sentence = f"{what} with engine: {scenario.engine}; take them out, or set another engine"
            found.append(Problem(place, sentence))
        elif fails and scenario.lab.controller != "segment_manager":
            sentence = (
                "need lab.controller: segment_manager, which moves paths away from what is dead, not "
                f"{scenario.lab.controller}"
            )
            found.append(Problem(place, sentence))
        changes, wrong = changes_of(topology, events, place)
        if scenario.lab.datapath == "kernel" and any(change.switches for change in changes):
            sentence = (
                "a switch that is killed is a process of its own, and the kernel's datapath goes on without it; use "
                "lab.datapath: userspace"
            )
            found.append(Problem(place, sentence))
        found += [*_change_problems(scenario, events, place), *wrong]
        if ENGINES[scenario.engine].changes:
            found += _manager_problems(scenario, changes, place)
    return found


def _manager_problems(scenario: Scenario, changes: Sequence[Change], place: str) -> list[Problem]:
    """Managers that are killed though no other could take over, or started though none is dead."""
    found, dead, count = [], 0, scenario.lab.managers
    for number, change in enumerate(changes):
        if not change.manager:
            continue
        if change.event.action == "start":
            if not dead:
                found.append(Problem(f"{place}.{number}", "no manager is dead then; kill comes before start"))
            dead = 0
        elif dead + 1 < count:
            dead += 1
        else:
            are = f"are {count} managers, {dead} of them dead then" if dead else "is one manager"
            remedy = (
                f"set lab.managers: {count + 1}" + (", or start manager before" if dead else "")
                if supports_key(carrying(scenario.engine, scenario.vm), "lab", "managers")
                else "take it out, or use engine: ovs, which has lab.managers"
            )
            found.append(Problem(f"{place}.{number}", f"there {are}, so nobody would take over; {remedy}"))
    return found


def _change_problems(scenario: Scenario, events: Sequence[Event], place: str) -> list[Problem]:
    """Links that would change to what cannot be."""
    found = []
    for number, event in enumerate(events):
        if event.action != "link":
            continue
        if scenario.links.aggregate:
            sentence = "changes one link, and links.aggregate: true makes parallel links one; use aggregate: false"
            found.append(Problem(f"{place}.{number}", sentence))
        if event.words.rate is not None and scenario.lab.dilation != "auto":
            slow = too_slow(event.words.rate, scenario.lab.chosen_dilation)
            found += [Problem(f"{place}.{number}", slow)] if slow else []
    return found


def too_slow(rate: float, dilation: float) -> str:
    """Why a link cannot be given a rate at a dilation; empty where it can."""
    if rate / dilation >= SLOWEST_LAB_LINK:
        return ""
    return (
        f"a lab link would run at {format_rate(rate / dilation)}; below {format_rate(SLOWEST_LAB_LINK)} nothing can be "
        f"measured, so use {format_rate(SLOWEST_LAB_LINK * dilation)} or more"
    )


def address_problems(scenario: Scenario) -> list[Problem]:
    """Hosts that ask for addresses by broadcast, where broadcasts are dropped."""
    if scenario.lab.arp == "static" or getattr(scenario.assignment, "flood", "tree") != "none":
        return []
    sentence = (
        '"broadcast" needs broadcasts and assignment.flood: none drops them, so no host would learn an address; use '
        "arp: static, or flood: tree"
    )
    return [Problem("lab.arp", sentence)]


def daemon_problems(scenario: Scenario, topology: Topology) -> list[Problem]:
    """More switch daemons than there are switches, or than the datapath can have."""
    wanted, place = scenario.lab.switch_daemons, "lab.switch_daemons"
    if isinstance(wanted, str) or wanted == 1:
        return []
    if wanted > topology.switch_count:
        switches = f"{topology.switch_count} switch{'es' if topology.switch_count > 1 else ''}"
        return [Problem(place, f"{wanted} daemons cannot share {switches}; use auto or a smaller number")]
    if scenario.lab.datapath != "userspace":
        sentence = (
            f"{wanted} daemons need lab.datapath: userspace; the kernel's works with one only. Say so, or use auto"
        )
        return [Problem(place, sentence)]
    return []


def security_problems(scenario: Scenario) -> list[Problem]:
    """Rules for hosts' own addresses alone where others than the lab itself install rules."""
    if not scenario.lab.port_security:
        return []
    place = "lab.port_security"
    if scenario.lab.controller != "none":
        sentence = (
            f"is for rules that the lab itself installs, once, and the controller {scenario.lab.controller} installs "
            "those of the plan, which take frames from any address; use lab.controller: none, or leave it out"
        )
        return [Problem(place, sentence)]
    if scenario.links.aggregate:
        sentence = (
            "is for rules that stay, and links.aggregate: true changes them when members go off; use aggregate: false, "
            "or leave it out"
        )
        return [Problem(place, sentence)]
    return []


def controller_problems(scenario: Scenario) -> list[Problem]:
    """A controller where links are aggregated, whose groups it cannot install, or paths that it cannot move."""
    if scenario.lab.managers > 1 and scenario.lab.controller != "segment_manager":
        sentence = (
            f"{scenario.lab.managers} take over from each other, which only segment_manager does, not "
            f"{scenario.lab.controller}; use lab.controller: segment_manager, or managers: 1"
        )
        return [Problem("lab.managers", sentence)]
    if scenario.lab.controller == "segment_manager" and origin_of("routings", scenario.routing_kind):
        sentence = (
            f'"segment_manager" routes again what failures leave, and the plug-in "{scenario.routing_kind}" is not '
            "in its process; use a routing of testbed, or another controller"
        )
        return [Problem("lab.controller", sentence)]
    if scenario.lab.controller == "segment_manager" and scenario.assignment_kind != "fixed":
        sentence = (
            '"segment_manager" moves paths by the PVIDs of hosts, which needs VLANs of the whole fabric; use '
            f"assignment.kind: fixed, not {scenario.assignment_kind} (with routing.selection: tree where the routing "
            "has it)"
        )
        return [Problem("lab.controller", sentence)]
    if scenario.lab.controller == "none" or not scenario.links.aggregate:
        return []
    if scenario.lab.controller == "segment_manager":
        sentence = (
            '"segment_manager" moves paths from link to link, and links.aggregate: true makes parallel links '
            "one, which goes on without a member; use controller: none, or aggregate: false"
        )
        return [Problem("lab.controller", sentence)]
    sentence = (
        f'"{scenario.lab.controller}" speaks OpenFlow 1.3, and links.aggregate: true takes the groups of 1.5; use '
        "controller: none, which installs them without one, or aggregate: false"
    )
    return [Problem("lab.controller", sentence)]


def learning_problems(scenario: Scenario) -> list[Problem]:
    """Switches that learn where the controller is not for them; and its opposite."""
    place, controller = "assignment.registration", scenario.lab.controller
    found: list[Problem] = []
    if getattr(scenario.assignment, "registration", "static") != "learning":
        if controller == "learning":
            sentence = (
                '"learning" is for switches that learn; use assignment.registration: learning (with assignment.kind: '
                "fixed), or controller: switch_tagged"
            )
            found.append(Problem("lab.controller", sentence))
        return found
    if controller not in ("none", "learning"):
        sentence = (
            f'"learning" changes rules in the switches, and the controller "{controller}" would take them back; use '
            "registration: static, or controller: learning or none"
        )
        found.append(Problem(place, sentence))
    return found
