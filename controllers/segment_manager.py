"""As switch_tagged; and when something dies, backup paths at once and then new tables (Mejia et al. 2007)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from controllers.framework import MAIN_DISPATCHER, cfg, ofp_event, on
from controllers.reconciler import Reconciler
from controllers.segments import SegmentReconciler, is_down
from controllers.switch_tagged import SwitchTagged
from testbed.plan import Plan

# A switch that answers nothing for as long is taken for dead; s.
_ECHO_EVERY, _UNANSWERED = 0.5, 2


class SegmentManager(SwitchTagged):
    """The framework's application: it turns events into calls of a SegmentReconciler."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        cfg.CONF.set_override("echo_request_interval", _ECHO_EVERY)
        cfg.CONF.set_override("maximum_unreplied_echo_requests", _UNANSWERED)
        super().__init__(*args, **kwargs)

    def make_reconciler(self, plan: Plan, rate: float) -> Reconciler:
        """A reconciler that remembers its state beside the plan."""
        return SegmentReconciler(plan, self.switches, rate, Path(f"{cfg.CONF.plan}.state"))

    @on(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def _port(self, event: Any) -> None:
        message = event.msg
        number = self.switches.number(message.datapath)
        if number is not None and isinstance(self.reconciler, SegmentReconciler):
            gone = message.reason == message.datapath.ofproto.OFPPR_DELETE
            self.reconciler.port_changed(number, message.desc.port_no, down=gone or is_down(message.desc))
