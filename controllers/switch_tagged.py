"""Install a plan on the switches that connect, keep it there, and carry it over to the next plan when asked."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from testbed.base.errors import TestbedError
from testbed.base.http_status import REFUSED, WRONG, serve_status
from testbed.base.units import TimeScale
from testbed.planning import Plan
from testbed.planning.prove_stored import proved_plan, read_stored

from .framework import (
    DEAD_DISPATCHER,
    HANDSHAKE_DISPATCHER,
    MAIN_DISPATCHER,
    OpenFlowApp,
    cfg,
    ofp_event,
    ofproto_v1_3,
    on,
)
from .reconciler import Reconciler
from .switches import Switches
from .unsupported import RefusedError

cfg.CONF.register_opts(
    [
        cfg.StrOpt("plan", help="file with the plan, as `testbed plan NAME --output` writes it"),
        cfg.FloatOpt("dilation", default=0.0, help="of the links' rates; 0 = the plan's"),
        cfg.StrOpt("status_host", default="127.0.0.1"),
        cfg.IntOpt("status_port", default=8080),
        cfg.StrOpt(
            "daemons", default="", help="folder of the control sockets of all switches' daemons; empty = unknown"
        ),
        cfg.FloatOpt("check_every", default=2.0, help="s between looks at the number of rules; 0 = never"),
    ]
)


class SwitchTagged(OpenFlowApp):  # type: ignore[misc]  # whichever framework there is
    """The framework's application: it turns events into calls of a Reconciler."""

    OFP_VERSIONS = (ofproto_v1_3.OFP_VERSION,)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        plan = read_stored(Path(cfg.CONF.plan))
        topology, scenario = plan.topology, plan.scenario
        self.switches = Switches(tuple(topology.switch_name(number) for number in range(topology.switch_count)))
        self._full_rate = scenario.links.rate
        dilation = cfg.CONF.dilation or scenario.lab.chosen_dilation
        self.reconciler = self.make_reconciler(plan, TimeScale(dilation).lab_rate(self._full_rate))
        self.status = serve_status(
            (cfg.CONF.status_host, cfg.CONF.status_port),
            {
                ("GET", "/"): lambda request: self.reconciler.status(),
                ("POST", "/plan"): self._move,
                ("POST", "/dilation"): self._dilate,
                ("POST", "/lldp"): self._hold_lldp,
            },
            {RefusedError: REFUSED, TestbedError: WRONG},
        )
        if cfg.CONF.check_every > 0:
            threading.Thread(target=self._check_all, args=(cfg.CONF.check_every,), daemon=True).start()

    def make_reconciler(self, plan: Plan, rate: float) -> Reconciler:
        """What keeps the switches at a plan whose links run at `rate` bit/s."""
        return Reconciler(plan, self.switches, rate)

    def _move(self, request: dict[str, Any]) -> dict[str, Any]:
        """Move to `plan` (its JSON text) with the links `off`; `wake_up` and `pause` in s as in Reconciler.move_to.

        The plan is proved first.
        """
        plan, off = proved_plan(request["plan"], "plan"), [int(link) for link in request["off"]]
        seconds = {key: float(request[key]) for key in ("wake_up", "pause") if key in request}
        return self.reconciler.move_to(plan, off, **seconds)

    def _dilate(self, request: dict[str, Any]) -> dict[str, Any]:
        """Links run at the plan's rate divided by `dilation` from now on."""
        self.reconciler.rate = TimeScale(float(request["dilation"])).lab_rate(self._full_rate)
        return {"rate": self.reconciler.rate}

    def _hold_lldp(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send no LLDP frames for `seconds`; this one sends none anyway."""
        return {"seconds": request["seconds"]}

    def _check_all(self, every: float) -> None:
        while True:
            time.sleep(every)
            for number in sorted(self.switches.list_connected()):
                self.reconciler.check(number)

    @on(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def _connection(self, event: Any) -> None:
        datapath = event.datapath
        number = self.switches.number(datapath)
        if number is None:
            if event.state == MAIN_DISPATCHER:
                self.logger.error("a switch with the datapath id %s is not in the plan; it is left alone", datapath.id)
            return
        if event.state == MAIN_DISPATCHER:
            self.switches.add(number, datapath)
            # Answers arrive on this thread, so another one waits for them.
            threading.Thread(target=self.reconciler.bring_in_step, args=(number,), daemon=True).start()
        elif self.switches.drop(number, datapath):
            self.reconciler.switch_disconnected(number)

    @on(ofp_event.EventOFPHello, HANDSHAKE_DISPATCHER)
    def _hello(self, event: Any) -> None:
        message = event.msg
        spoken = {version for element in getattr(message, "elements", ()) for version in element.versions}
        # Without a list a switch speaks what it names and all before.
        if not (ofproto_v1_3.OFP_VERSION in spoken if spoken else message.version >= ofproto_v1_3.OFP_VERSION):
            self.reconciler.note_refused(message.datapath.address[0], spoken or {message.version})

    @on(ofp_event.EventOFPAggregateStatsReply, MAIN_DISPATCHER)
    def _count(self, event: Any) -> None:
        message = event.msg
        self.switches.add_answer(message.datapath, message.xid, [message.body.flow_count])

    @on(ofp_event.EventOFPFlowStatsReply, MAIN_DISPATCHER)
    @on(ofp_event.EventOFPPortDescStatsReply, MAIN_DISPATCHER)
    @on(ofp_event.EventOFPPortStatsReply, MAIN_DISPATCHER)
    def _list(self, event: Any) -> None:
        message = event.msg
        more = bool(message.flags & message.datapath.ofproto.OFPMPF_REPLY_MORE)
        self.switches.add_answer(message.datapath, message.xid, message.body, more=more)

    @on(ofp_event.EventOFPRoleReply, MAIN_DISPATCHER)
    def _role(self, event: Any) -> None:
        self.switches.add_answer(event.msg.datapath, event.msg.xid, [(event.msg.role, event.msg.generation_id)])

    @on(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    def _on_barrier(self, event: Any) -> None:
        self.switches.add_answer(event.msg.datapath, event.msg.xid)

    @on(ofp_event.EventONFBundleCtrlMsg, MAIN_DISPATCHER)
    def _bundle(self, event: Any) -> None:
        message = event.msg
        if message.type == message.datapath.ofproto.ONF_BCT_COMMIT_REPLY:
            self.switches.heard_bundle(message.datapath, message.bundle_id)

    @on(ofp_event.EventOFPErrorMsg, MAIN_DISPATCHER)
    def _error(self, event: Any) -> None:
        message = event.msg
        self.switches.heard_error(message.datapath, message.xid, message.type, message.code)
