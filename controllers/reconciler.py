"""Keep switches at the rules of a plan, and carry them over to the next plan, step by step."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from testbed.base.errors import InputError
from testbed.base.model import Rule
from testbed.fabric.transition import Step, transition_between, transition_deadlock, transition_problems
from testbed.fabric.transition.steps import drain_seconds
from testbed.planning import Plan

from .openflow_messages import (
    Content,
    add_message,
    by_switch,
    differences,
    place,
    remove_flow_message,
    remove_message,
)
from .switches import SwitchError, Switches
from .unsupported import RefusedError, refuse_plan, same_fabric

_ATTEMPTS = 3
# s after which a switch goes by rules that it has confirmed: Open vSwitch brings the flows of its datapath into step in
# rounds, at once where it has a processor and each half second at latest. Frames on old paths begin until then.
TAKEN_OVER = 0.5
_AT_ONCE = 16


class Reconciler:
    """What the switches should have, and the way to bring them there.

    Args:
        plan: proved.
        switches: conversations with them.
        rate: bit/s that a link between switches has, by which frames on old paths arrive; may be set later.
    """

    learning = False

    def __init__(self, plan: Plan, switches: Switches, rate: float) -> None:
        plan.require_proof()
        plan.require_tables()
        refuse_plan(plan, learning=self.learning)
        self.plan = plan
        self.switches = switches
        self.off: set[int] = set()
        self.rate = rate
        self._wanted = _by_switch(plan.rules, len(switches.names))
        self._changing = threading.Lock()
        self._locks = [threading.Lock() for _ in switches.names]
        self._doing: dict[str, Any] | None = None
        self._states: dict[int, dict[str, Any]] = {}
        self._refused: dict[tuple[str, tuple[str, ...]], int] = {}
        self._generation = new_generation()

    # -------------------------------------------------------------------------------------------------- in step

    def bring_in_step(self, number: int) -> None:
        """Give a switch that has connected the rules it should have; one that has them is left alone."""
        with self._locks[number]:
            self._note(number, "checking")
            try:
                self.switches.become_master(number, self._generation)
                changed = self._reconcile(number)
                self._ports(number)
            except SwitchError as error:
                self._note_failure(number, error)
                return
            self._note(number, "in step", rules=len(self._wanted[number]), changed=changed)

    def check(self, number: int) -> None:
        """Look whether a switch still has as many rules as it should and obeys this controller; if not, set it right.

        Counting costs little. A rule that was put in another's place is found when the switch connects anew.
        """
        state = self._states.get(number, {}).get("state")
        if state == "in step":
            with self._locks[number]:
                try:
                    if not self.switches.is_master(number):
                        raise SwitchError(f"{self.switches.names[number]} obeys another controller")
                    if self.switches.rule_count(number, learned=not self.learning) == len(self._wanted[number]):
                        return
                except SwitchError as error:
                    self._note_failure(number, error)
                    return
        if state in ("in step", "not in step"):
            self.bring_in_step(number)

    def note_refused(self, address: str, versions: Collection[int]) -> None:
        """A switch was turned away because it does not speak OpenFlow 1.3.

        Args:
            address: it called from; which switch it is it could not say.
            versions: that it speaks, as numbers of the protocol.
        """
        speaks = tuple(f"1.{version - 1}" for version in sorted(versions))
        self._refused[address, speaks] = self._refused.get((address, speaks), 0) + 1

    def _reconcile(self, number: int) -> int:
        """Bring a switch's rules to what they should be; returns how many were wrong."""
        changed = 0
        for _ in range(_ATTEMPTS):
            found, foreign = self.switches.rules(number, self.learnable(number))
            remove, add = differences(self._wanted[number].values(), found)
            if not (remove or add or foreign):
                return changed
            changed += len(remove) + len(add) + len(foreign)
            datapath = self.switches.datapath(number)
            self.switches.carry_out(
                number,
                [
                    *(remove_flow_message(datapath, flow) for flow in foreign),
                    *(remove_message(datapath, rule) for rule in remove),
                    *(add_message(datapath, rule) for rule in add),
                ],
            )
        raise SwitchError(f"{self.switches.names[number]} does not keep its rules; is there another controller?")

    def learnable(self, number: int) -> Collection[Content]:
        """What a switch may have learned by itself, and keep."""
        del number
        return ()

    def _ports(self, number: int) -> None:
        """Shut down the ports of links that are off."""
        topology = self.plan.topology
        ends = [2 * link + end for link in self.off for end in (0, 1)]
        mine = [int(topology.out_port[channel]) for channel in ends if topology.channel_source[channel] == number]
        if mine:
            ports = self.switches.ports(number)
            for port in mine:
                self.switches.set_port(number, ports[port], up=False)

    def switch_disconnected(self, number: int) -> None:
        """A switch has disconnected; it keeps forwarding by the rules it has."""
        self._note(number, "gone")

    def _note(self, number: int, state: str, **more: Any) -> None:
        self._states[number] = {"state": state, "since": time.time(), **more}

    def _note_failure(self, number: int, error: SwitchError) -> None:
        """Note what a switch did not do, unless it disconnected meanwhile: then it is not asked again."""
        if self._states.get(number, {}).get("state") != "gone":
            self._note(number, "not in step", problem=str(error))

    # ------------------------------------------------------------------------------------------------- next plan

    def move_to(self, plan: Plan, off: Collection[int], wake_up: float = 0.0, pause: float = 0.0) -> dict[str, Any]:
        """Carry the switches over to another plan of the same fabric.

        Args:
            plan: proved; its VLANs have identifiers of their own where they differ (see transition.successor()).
            off: links that are off afterwards.
            wake_up: s from a link's being switched on until it carries frames.
            pause: s after each step, to look at the states in between.

        Returns:
            what was done: `steps` with seconds, `deadlock` sentences about old and new paths together.

        Raises:
            RefusedError: nothing has changed.
        """
        if not self._changing.acquire(blocking=False):
            raise RefusedError("a transition is under way; ask again when it has ended")
        try:
            self._refuse_what_cannot_be(plan)
            topology = self.plan.topology
            on, newly_off = tuple(sorted(self.off - set(off))), tuple(sorted(set(off) - self.off))
            old, new = (self.plan.routes, self.plan.vlans), (plan.routes, plan.vlans)
            try:
                transition = transition_between(topology, old, new, on=on, off=newly_off)
            except InputError as error:
                raise RefusedError(f"there is no way to this plan: {error.problems[0].sentence}") from error
            problems = transition_problems(topology, transition, self.plan.routes, plan.routes, self.off)
            if problems:
                raise RefusedError(f"the way to this plan is not safe: {problems[0].sentence}")
            cycle = transition_deadlock(topology, old, new)
            done = self._carry_out(transition.steps, transition.undo, wake_up, pause)
            self.plan, self.off = plan, set(off)
            return {"steps": done, "deadlock": [violation.sentence for violation in cycle]}
        finally:
            self._doing = None
            self._changing.release()

    def _refuse_what_cannot_be(self, plan: Plan) -> None:
        if not same_fabric(self.plan, plan):
            raise RefusedError("this is a plan for another topology; switches, hosts, links and ports must be the same")
        if not plan.is_proved:
            raise RefusedError("this plan is not proved: " + "; ".join(v.sentence for v in plan.violations[:3]))
        refuse_plan(plan, learning=self.learning)
        late = [
            name for number, name in enumerate(self.switches.names)
            if self._states.get(number, {}).get("state") != "in step"
        ]  # fmt: skip
        if late:
            raise RefusedError(f"not all switches are in step: {', '.join(late[:5])}")

    def _carry_out(
        self, steps: tuple[Step, ...], undo: Callable[[int], tuple[Step, ...]], wake_up: float, pause: float
    ) -> list[dict[str, Any]]:
        """Carry out steps one after the other; if one fails, undo all that was done."""
        done: list[dict[str, Any]] = []
        for count, step in enumerate(steps, 1):
            self._doing = {"step": count, "of": len(steps), "action": step.action, "done": False}
            started = time.monotonic()
            try:
                self._step(step, wake_up)
            except SwitchError as error:
                self._doing = {"undoing": str(error)}
                for back in undo(count):
                    # Disconnected switches are reconciled on reconnect.
                    self._step(back, wake_up, strict=False)
                raise RefusedError(f"{error}; all steps were undone") from error
            done.append(
                {"action": step.action, "what": step.sentence(self.plan.topology),
                 "seconds": round(time.monotonic() - started, 4)}
            )  # fmt: skip
            self._doing["done"] = True
            time.sleep(pause)
        return done

    def _step(self, step: Step, wake_up: float, *, strict: bool = True) -> None:
        if step.action == "drain":
            plan, queue = self.plan, self.plan.scenario.links.queue_frames
            time.sleep(max(TAKEN_OVER, drain_seconds(plan.topology, plan.routes, self.rate, queue, plan.speeds)))
        elif step.links:
            self._set_links(step, strict=strict)
            if step.action == "links on":
                time.sleep(wake_up)
        else:
            self._change_rules(step, strict=strict)

    def _change_rules(self, step: Step, *, strict: bool) -> None:
        of_switch = by_switch(step.rules)
        message = remove_message if step.action == "remove" else add_message

        def change(number: int) -> None:
            with self._locks[number]:
                for rule in of_switch[number]:
                    if step.action == "remove":
                        self._wanted[number].pop(place(rule), None)
                    else:
                        self._wanted[number][place(rule)] = rule
                datapath = self.switches.datapath(number)
                self.switches.carry_out(number, [message(datapath, rule) for rule in of_switch[number]])

        _change_switches(change, of_switch, strict=strict)

    def _set_links(self, step: Step, *, strict: bool) -> None:
        up = step.action == "links on"
        topology = self.plan.topology
        ends = [2 * link + end for link in step.links for end in (0, 1)]
        (self.off.difference_update if up else self.off.update)(step.links)

        def change(number: int) -> None:
            ports = self.switches.ports(number)
            for channel in ends:
                if topology.channel_source[channel] == number:
                    self.switches.set_port(number, ports[int(topology.out_port[channel])], up=up)

        _change_switches(change, {int(topology.channel_source[channel]) for channel in ends}, strict=strict)

    # ---------------------------------------------------------------------------------------------------- status

    def _slowed_links(self) -> dict[str, float]:
        """Share of its rate at which a link runs, by its name, of those that do not run at all of it."""
        topology, speeds = self.plan.topology, self.plan.speeds
        shares = {} if speeds is None else {link: share for link, share in enumerate(speeds.tolist()) if share < 1}
        return {topology.channel_name(2 * link).replace("→", "–"): share for link, share in shares.items()}

    def status(self) -> dict[str, Any]:
        """What is going on, as plain data."""
        topology = self.plan.topology
        return {
            "plan": self.plan.digest,
            "scenario": self.plan.scenario.name,
            "in_step": sum(state["state"] == "in step" for state in self._states.copy().values()),
            "switches": {
                name: self._states.get(number, {"state": "not seen"}) for number, name in enumerate(self.switches.names)
            },
            "off": [topology.channel_name(2 * link).replace("→", "–") for link in sorted(self.off)],
            "slower": self._slowed_links(),
            "transition": self._doing,
            "rate": self.rate,
            "refused": [
                {
                    "address": address,
                    "speaks": list(speaks),
                    "times": times,
                    "sentence": f"a switch at {address} speaks OpenFlow {', '.join(speaks)} and not 1.3",
                }
                for (address, speaks), times in self._refused.copy().items()
            ],
        }


def new_generation() -> int:
    """A number by which the latest of two controllers wins a switch, whichever way its connections come and go."""
    return time.time_ns() & ((1 << 63) - 1)


def _by_switch(rules: Iterable[Rule], switches: int) -> list[dict[Any, Rule]]:
    wanted: list[dict[Any, Rule]] = [{} for _ in range(switches)]
    for rule in rules:
        wanted[rule.switch][place(rule)] = rule
    return wanted


def _change_switches(change: Callable[[int], None], switches: Collection[int], *, strict: bool) -> None:
    """Change switches in parallel; raises the first SwitchError after all were tried, if `strict`."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        attempts = [pool.submit(change, number) for number in sorted(switches)]
    for attempt in attempts:
        error = attempt.exception()
        if error is not None and (strict or not isinstance(error, SwitchError)):
            raise error
