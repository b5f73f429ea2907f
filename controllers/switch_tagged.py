"""Install a plan on the switches that connect, keep it there, and carry it over to the next plan when asked."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from controllers.framework import DEAD_DISPATCHER, MAIN_DISPATCHER, OpenFlowApp, cfg, ofp_event, ofproto_v1_3, on
from controllers.keeper import Keeper
from controllers.status import serve_status
from controllers.switches import Switches
from testbed.plan.store import plan_from_json
from testbed.transition.drain import drain_seconds
from testbed.units import TimeScale

cfg.CONF.register_opts(
    [
        cfg.StrOpt("plan", help="file with the plan, as `testbed plan NAME --output` writes it"),
        cfg.FloatOpt("dilation", default=0.0, help="of the links' rates; 0 = the plan's"),
        cfg.StrOpt("status_host", default="127.0.0.1"),
        cfg.IntOpt("status_port", default=8080),
    ]
)


class SwitchTagged(OpenFlowApp):  # type: ignore[misc]  # whichever framework there is
    """The framework's application: it turns events into calls of a Keeper."""

    OFP_VERSIONS = (ofproto_v1_3.OFP_VERSION,)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        plan = plan_from_json(Path(cfg.CONF.plan).read_text())
        topology, scenario = plan.topology, plan.scenario
        self.switches = Switches(tuple(topology.switch_name(number) for number in range(topology.switch_count)))
        dilation = cfg.CONF.dilation or scenario.lab.chosen_dilation
        rate = TimeScale(dilation).lab_rate(scenario.links.rate)
        drain = drain_seconds(topology, plan.routes, rate, scenario.links.queue_frames)
        self.keeper = Keeper(plan, self.switches, drain)
        self.status = serve_status(
            (cfg.CONF.status_host, cfg.CONF.status_port),
            {("GET", "/"): lambda request: self.keeper.status(), ("POST", "/plan"): self._move},
        )

    def _move(self, request: dict[str, Any]) -> dict[str, Any]:
        """Move to `plan` (its JSON text) with the links `off` and `wake_up` seconds for those switched on."""
        return self.keeper.move_to(
            plan_from_json(request["plan"]), [int(link) for link in request["off"]], float(request.get("wake_up", 0.0))
        )

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
            # Answers come by this thread, so whoever waits for them is another.
            threading.Thread(target=self.keeper.bring_in_step, args=(number,), daemon=True).start()
        elif self.switches.drop(number, datapath):
            self.keeper.gone(number)

    @on(ofp_event.EventOFPFlowStatsReply, MAIN_DISPATCHER)
    @on(ofp_event.EventOFPPortDescStatsReply, MAIN_DISPATCHER)
    def _list(self, event: Any) -> None:
        message = event.msg
        more = bool(message.flags & message.datapath.ofproto.OFPMPF_REPLY_MORE)
        self.switches.heard(message.datapath, message.xid, message.body, more=more)

    @on(ofp_event.EventOFPRoleReply, MAIN_DISPATCHER)
    @on(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    def _done(self, event: Any) -> None:
        self.switches.heard(event.msg.datapath, event.msg.xid)

    @on(ofp_event.EventONFBundleCtrlMsg, MAIN_DISPATCHER)
    def _bundle(self, event: Any) -> None:
        message = event.msg
        if message.type == message.datapath.ofproto.ONF_BCT_COMMIT_REPLY:
            self.switches.heard_bundle(message.datapath, message.bundle_id)

    @on(ofp_event.EventOFPErrorMsg, MAIN_DISPATCHER)
    def _error(self, event: Any) -> None:
        message = event.msg
        self.switches.heard_error(message.datapath, message.xid, f"OpenFlow error {message.type}, code {message.code}")
