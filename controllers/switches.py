"""The switches that are connected, and conversations with them: ask, wait for the answer, or say what went wrong."""

from __future__ import annotations

import itertools
import os
import queue
import threading
from collections.abc import Collection, Iterable
from typing import Any

from testbed.base.model import Rule
from testbed.fabric.openflow.tables import LEARNED

from .lldp import TRANSACTION, packet_out
from .openflow_bytes import add_bytes, remove_bytes
from .openflow_messages import Content, bundle, content, rule_of

ANSWER_LIMIT = 10.0
_BUNDLE_DONE = "committed"
_NO_GENERATION = 0xFFFFFFFFFFFFFFFF  # of a switch that has had no master yet


class SwitchError(Exception):
    """A switch did not carry out a request; the text says which and why."""


class Switches:
    """Conversations with connected switches. Handlers of the framework's events call the `heard_*` methods.

    Args:
        names: of the plan's switches; switch number n has the datapath id n + 1.

    Attributes:
        secret: of the LLDP frames that they send for us.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self._lock = threading.Lock()
        self._datapaths: dict[int, Any] = {}
        self._answers: dict[tuple[int, str, int], queue.SimpleQueue[Any]] = {}
        self._refused: dict[int, SwitchError] = {}  # of requests without a waiting caller
        self._numbers = itertools.count(1)
        self.secret = os.urandom(16)
        self._frames: dict[tuple[int, int], bytes] = {}

    def number(self, datapath: Any) -> int | None:
        """Number of a switch, or None for one that the plan does not have."""
        number = (datapath.id or 0) - 1
        return number if 0 <= number < len(self.names) else None

    def list_connected(self) -> set[int]:
        """Numbers of the switches that are there now."""
        with self._lock:
            return set(self._datapaths)

    def add(self, number: int, datapath: Any) -> None:
        """A switch has connected, perhaps anew."""
        with self._lock:
            self._datapaths[number] = datapath

    def drop(self, number: int, datapath: Any) -> bool:
        """A connection has ended; True if it was the switch's present one."""
        with self._lock:
            if self._datapaths.get(number) is not datapath:
                return False
            del self._datapaths[number]
            waiting = [answers for (switch, _, _), answers in self._answers.items() if switch == number]
        for answers in waiting:
            answers.put(SwitchError(f"{self.names[number]} disconnected"))
        return True

    # --------------------------------------------------------------------------------------------------- questions

    def become_master(self, number: int, generation: int) -> None:
        """Ask for the sole right to change the switch.

        Raises:
            SwitchError: no answer, or a later controller has it.
        """
        self._role(number, "MASTER", generation)

    def become_slave(self, number: int) -> None:
        """Leave that right to another, and hear of its ports alone.

        Raises:
            SwitchError: no answer, or another has just taken it.
        """
        _, generation = self._role(number, "NOCHANGE")
        self._role(number, "SLAVE", 0 if generation == _NO_GENERATION else generation)

    def is_master(self, number: int) -> bool:
        """Whether this controller still has the sole right to change the switch.

        Raises:
            SwitchError: no answer.
        """
        role, _ = self._role(number, "NOCHANGE")
        return bool(role == self._datapath(number).ofproto.OFPCR_ROLE_MASTER)

    def _role(self, number: int, wish: str, generation: int = 0) -> tuple[int, int]:
        """Ask for a role; returns the one that the switch has given, and the latest generation that it knows."""
        datapath = self._datapath(number)
        role = getattr(datapath.ofproto, f"OFPCR_ROLE_{wish}")
        request = datapath.ofproto_parser.OFPRoleRequest(datapath, role, generation)
        (answer,) = self._ask(number, datapath, "xid", [request])
        return int(answer[0]), int(answer[1])

    def rule_count(self, number: int, *, learned: bool = True) -> int:
        """How many rules a switch has.

        Args:
            number: of the switch.
            learned: count those that it has learned as well.

        Raises:
            SwitchError: no answer.
        """
        datapath = self._datapath(number)
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        cookie = (0, 0 if learned else LEARNED)
        every = (0, ofproto.OFPTT_ALL, ofproto.OFPP_ANY, ofproto.OFPG_ANY, *cookie, parser.OFPMatch())
        (count,) = self._ask(number, datapath, "xid", [parser.OFPAggregateStatsRequest(datapath, *every)])
        return int(count)

    def rules(self, number: int, learnable: Collection[Content] = ()) -> tuple[list[Rule], list[Any]]:
        """The rules a switch has, and flows that are none of ours.

        Args:
            number: of the switch.
            learnable: what it may have learned by itself, which is left out where it has.

        Raises:
            SwitchError: no answer.
        """
        datapath = self._datapath(number)
        request = datapath.ofproto_parser.OFPFlowStatsRequest(datapath)
        found: list[Rule] = []
        foreign: list[Any] = []
        for flow in self._ask(number, datapath, "xid", [request]):
            rule = rule_of(number, datapath, flow)
            if rule is None:
                foreign.append(flow)
            elif flow.cookie != LEARNED or content(rule) not in learnable:
                found.append(rule)
        return found, foreign

    def ports(self, number: int) -> dict[int, Any]:
        """Ports of a switch by number, as it describes them.

        Raises:
            SwitchError: no answer.
        """
        datapath = self._datapath(number)
        request = datapath.ofproto_parser.OFPPortDescStatsRequest(datapath, 0)
        return {port.port_no: port for port in self._ask(number, datapath, "xid", [request])}

    def read_received(self, number: int) -> dict[int, int]:
        """Frames that have come in at each port of a switch.

        Raises:
            SwitchError: no answer.
        """
        datapath = self._datapath(number)
        request = datapath.ofproto_parser.OFPPortStatsRequest(datapath, 0, datapath.ofproto.OFPP_ANY)
        return {port.port_no: port.rx_packets for port in self._ask(number, datapath, "xid", [request])}

    def announce(self, number: int, ports: Iterable[int], lasts: int) -> None:
        """Have a switch send LLDP frames by ports, which neighbours may believe for `lasts` s, and do not wait.

        Raises:
            SwitchError: it is not connected.
        """
        datapath, frames = self._datapath(number), []
        for port in ports:
            if (number, port) not in self._frames:
                self._frames[number, port] = packet_out(datapath, number, port, self.secret, lasts)
            frames.append(self._frames[number, port])
        datapath.send(b"".join(frames))

    def carry_out(self, number: int, messages: Iterable[Any]) -> None:
        """Have a switch carry out changes of rules, all of them or none.

        Raises:
            SwitchError: it refused, or gave no answer.
        """
        datapath, bundle_number = self._datapath(number), next(self._numbers)
        self._ask(number, datapath, "bundle", bundle(datapath, bundle_number, messages), bundle_number)

    def send(self, number: int, add: Iterable[Rule] = (), remove: Iterable[Rule] = ()) -> None:
        """Send changes of rules and do not wait; what the switch says against them, confirm() raises.

        Raises:
            SwitchError: it is not connected.
        """
        datapath = self._datapath(number)
        # Rules are no messages of the framework here; one transaction number serves them all.
        transaction = datapath.set_xid(datapath.ofproto_parser.OFPBarrierRequest(datapath))
        datapath.send(remove_bytes(remove, transaction) + add_bytes(add, transaction))

    def confirm(self, number: int) -> None:
        """Wait until a switch has carried out all that was sent.

        Raises:
            SwitchError: it refused something since the last time, or gave no answer.
        """
        datapath = self._datapath(number)
        self._ask(number, datapath, "xid", [datapath.ofproto_parser.OFPBarrierRequest(datapath)])
        with self._lock:
            refused = self._refused.pop(number, None)
        if refused is not None:
            raise refused

    def set_port(self, number: int, port: Any, *, up: bool) -> None:
        """Shut a port down, or resume it.

        Raises:
            SwitchError: it refused, or gave no answer.
        """
        datapath = self._datapath(number)
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        down = ofproto.OFPPC_PORT_DOWN
        change = parser.OFPPortMod(datapath, port.port_no, port.hw_addr, 0 if up else down, down, 0)
        barrier = parser.OFPBarrierRequest(datapath)
        self._ask(number, datapath, "xid", [change, barrier])

    def datapath(self, number: int) -> Any:
        """The framework's object for a connected switch, which messages are made for.

        Raises:
            SwitchError: it is not connected.
        """
        return self._datapath(number)

    def _datapath(self, number: int) -> Any:
        with self._lock:
            datapath = self._datapaths.get(number)
        if datapath is None:
            raise SwitchError(f"{self.names[number]} is not connected")
        return datapath

    def _ask(self, number: int, datapath: Any, kind: str, messages: list[Any], key: int | None = None) -> list[Any]:
        """Send messages and return the body of the answer to the last."""
        for message in messages:
            datapath.set_xid(message)
        place = (number, kind, messages[-1].xid if key is None else key)
        keys = [place, *((number, "error", message.xid) for message in messages)]
        answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        with self._lock:
            self._answers |= dict.fromkeys(keys, answers)
        body: list[Any] = []
        try:
            for message in messages:
                datapath.send_msg(message)
            while True:
                answer = answers.get(timeout=ANSWER_LIMIT)
                if isinstance(answer, SwitchError):
                    raise answer
                part, more = answer
                body += part
                if not more:
                    return body
        except queue.Empty:
            raise SwitchError(f"{self.names[number]} did not answer within {ANSWER_LIMIT:g} s") from None
        finally:
            with self._lock:
                for used in keys:
                    self._answers.pop(used, None)

    # ----------------------------------------------------------------------------------------------------- answers

    def add_answer(self, datapath: Any, xid: int, body: Iterable[Any] = (), *, more: bool = False) -> None:
        """An answer to the message with this transaction number has come, or a part of one."""
        self._answer(datapath, "xid", xid, (list(body), more))

    def heard_bundle(self, datapath: Any, bundle_number: int) -> None:
        """A bundle has been carried out."""
        self._answer(datapath, "bundle", bundle_number, ([_BUNDLE_DONE], False))

    def heard_error(self, datapath: Any, xid: int, kind: int, code: int) -> None:
        """A switch has refused a message; type and code as in OpenFlow."""
        number, ofproto = self.number(datapath), datapath.ofproto
        if number is None or xid == TRANSACTION:
            return
        what = f"OpenFlow error {kind}, code {code}"
        if (kind, code) in (
            (ofproto.OFPET_ROLE_REQUEST_FAILED, ofproto.OFPRRFC_STALE),
            (ofproto.OFPET_BAD_REQUEST, ofproto.OFPBRC_IS_SLAVE),
        ):
            what = "it obeys a controller that was started later"
        error = SwitchError(f"{self.names[number]} refused: {what}")
        if not self._answer(datapath, "error", xid, error):
            with self._lock:
                self._refused[number] = error

    def _answer(self, datapath: Any, kind: str, key: int, answer: Any) -> bool:
        """Hand an answer to the caller that waits for it; False where none does."""
        number = self.number(datapath)
        with self._lock:
            answers = None if number is None else self._answers.get((number, kind, key))
        if answers is not None:
            answers.put(answer)
        return answers is not None
