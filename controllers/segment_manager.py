"""As switch_tagged; and when something dies, backup paths at once and then new tables (Mejia et al. 2007)."""

from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

from testbed.planning import Plan

from .election import Election, lock_of
from .framework import MAIN_DISPATCHER, cfg, ofp_event, on
from .kernel_flows import forget_flows
from .lldp import read
from .reconciler import Reconciler
from .segments import SegmentReconciler, is_down
from .switch_tagged import SwitchTagged

# A switch that answers nothing for as long is taken for dead; s.
_ECHO_EVERY, _UNANSWERED = 0.5, 2
_TELL_EVERY = 1.0  # s between the LLDP frames of a port
_LONGEST_HOLD = 60.0  # s for which LLDP frames can be held back at most


class SegmentManager(SwitchTagged):
    """The framework's application: it turns events into calls of a SegmentReconciler."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        cfg.CONF.set_override("echo_request_interval", _ECHO_EVERY)
        cfg.CONF.set_override("maximum_unreplied_echo_requests", _UNANSWERED)
        self._round_lock, self._held_until = threading.Lock(), 0.0
        super().__init__(*args, **kwargs)
        threading.Thread(target=self._send_lldp_forever, daemon=True).start()

    def _send_lldp_forever(self) -> None:
        while isinstance(self.reconciler, SegmentReconciler):
            time.sleep(_TELL_EVERY)
            with self._round_lock:
                if time.monotonic() < self._held_until:
                    continue
                try:
                    self.reconciler.send_lldp()
                except Exception:  # this thread must go on; the log tells
                    self.logger.exception("LLDP")

    def _hold_lldp(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send no LLDP frames for `seconds`, 0 = go on; answered when a round that was under way has ended.

        How long a port may hear nothing is counted in rounds, so no link is given up for it.
        """
        with self._round_lock:
            seconds = min(float(request["seconds"]), _LONGEST_HOLD)
            self._held_until = time.monotonic() + seconds
        return {"seconds": seconds}

    def make_reconciler(self, plan: Plan, rate: float) -> Reconciler:
        """A reconciler that remembers its state beside the plan, and is elected by a lock there."""
        memory, election = Path(f"{cfg.CONF.plan}.state"), Election(lock_of(Path(cfg.CONF.plan)))
        daemons = cfg.CONF.daemons
        forget = partial(forget_flows, Path(daemons)) if daemons else lambda: False
        return SegmentReconciler(plan, self.switches, rate, memory, election, forget)

    @on(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def _port(self, event: Any) -> None:
        message = event.msg
        number = self.switches.number(message.datapath)
        if number is not None and isinstance(self.reconciler, SegmentReconciler):
            gone = message.reason == message.datapath.ofproto.OFPPR_DELETE
            self.reconciler.port_changed(number, message.desc.port_no, down=gone or is_down(message.desc))

    @on(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def _frame(self, event: Any) -> None:
        message = event.msg
        number, there = self.switches.number(message.datapath), read(bytes(message.data), self.switches.secret)
        if number is not None and there is not None and isinstance(self.reconciler, SegmentReconciler):
            self.reconciler.heard_from(number, message.match["in_port"], there)
