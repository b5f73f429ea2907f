"""What a lab does while it is in use: obey a controller, take links down and up.

These operations wait for no other one: they are there to disturb what is under way, or to ask about it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.emulate.fabric import Fabric
from testbed.emulate.openvswitch import OpenVSwitch
from testbed.errors import LabError

if TYPE_CHECKING:
    from testbed.emulate.controller import Controller

Progress = Callable[[str], None]
BESIDE_LOADS = frozenset({"link", "speed", "controller", "controller_wait", "controller_stop", "controller_start"})


class LiveFabric:
    """Operations of the agent on a network that stands.

    Args:
        fabric: returns the network, or raises LabError where it is not built or its switches died.

    Attributes:
        operations: name → function of the request, as in Agent.
    """

    def __init__(self, fabric: Callable[[], Fabric]) -> None:
        self._fabric = fabric
        self._controller: Controller | None = None
        self._lock = threading.Lock()
        self.operations: dict[str, Callable[[dict[str, Any], Progress], Any]] = {
            "link": self.link,
            "speed": self.speed,
            "controller": self.ask_controller,
            "controller_wait": self.controller_wait,
            "controller_stop": self.controller_stop,
            "controller_start": self.controller_start,
        }

    def start_controller(self, name: str, folder: Path, dilation: float) -> None:
        """Start the controller that is to install the rules."""
        # It needs HTTP, without which other labs stand sooner.
        from testbed.emulate.controller import Controller  # noqa: PLC0415

        self._controller = Controller(name, folder)
        self._controller.start(dilation)

    def bring_rules(self, order: dict[str, Any], ovs: OpenVSwitch, progress: Progress) -> None:
        """Install the rules on bridges that are there, or let the controller do it."""
        if self._controller is None:
            ovs.install(order["rules"])
        else:
            self._controller.wait_until_it_answers()
            ovs.set_controllers([self._controller.target])
            self._controller.wait_in_step(progress=progress)

    def tell_dilation(self, dilation: float) -> None:
        """Tell a controller how fast the links are from now on; it waits for frames to arrive."""
        if self._controller is not None:
            self._controller.ask("POST", "/dilation", {"dilation": dilation})

    def link(self, request: dict[str, Any], progress: Progress) -> list[str]:
        """Take a link down or up, at both ends: `link` is its number, or `host` a host's name; returns the interfaces.

        With `end`, 0 or 1, only that end of a link goes down or up; its other end then has no carrier.
        """
        del progress
        return self._fabric().set_link(request.get("link"), request.get("host"), request.get("end"), request["up"])

    def speed(self, request: dict[str, Any], progress: Progress) -> list[str]:
        """Change the speed of links: `speeds` is a share of the rate by the link's number; returns the interfaces."""
        del progress
        with self._lock:
            return self._fabric().set_speeds({str(link): float(share) for link, share in request["speeds"].items()})

    def ask_controller(self, request: dict[str, Any], progress: Progress) -> Any:
        """Ask the controller by HTTP: `method`, `path`, `body`, `limit` in s; without these its status."""
        del progress
        asked = {key: request[key] for key in ("method", "path", "body", "limit") if key in request}
        return self._need_controller().ask(**asked)

    def controller_wait(self, request: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Wait until all switches are in step, up to `limit` s; returns the controller's status."""
        limit = {"limit": request["limit"]} if "limit" in request else {}
        return self._need_controller().wait_in_step(**limit, progress=progress)

    def controller_stop(self, request: dict[str, Any], progress: Progress) -> None:
        """Kill the controller, as a crash would; switches keep their rules."""
        del request, progress
        with self._lock:
            self._need_controller().stop()

    def controller_start(self, request: dict[str, Any], progress: Progress) -> None:
        """Start the controller anew, from the plan the lab was built from."""
        del request, progress
        with self._lock:
            self._need_controller().start(self._fabric().order["dilation"])

    def _need_controller(self) -> Controller:
        if self._controller is None:
            raise LabError(
                "this lab has no controller: its rules were installed once; use lab.controller: switch_tagged"
            )
        return self._controller
