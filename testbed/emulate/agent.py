"""Process 1 of a lab: builds it when told, then serves requests until the namespaces end with it.

One JSON object a line each way over a Unix socket. A request names its `op`; answers are any number of
`{"progress": text}` and then one `{"result": …}` or `{"error": sentence}`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from testbed.emulate import counters, loads, reach
from testbed.emulate.fabric import Fabric
from testbed.emulate.openvswitch import OpenVSwitch
from testbed.emulate.shares import daemon_count, divide, switch_ports
from testbed.errors import LabError

FOLDER = Path("/run/lab")
SOCKET = FOLDER / "agent.sock"
# Open vSwitch carries the datapath's packet counts over to its rules twice a second.
_STATISTICS_LAG = 1.2
STATE = FOLDER / "state.json"

Progress = Callable[[str], None]


class Agent:
    """State and operations of one lab."""

    def __init__(self) -> None:
        self.ovs = OpenVSwitch(FOLDER / "ovs")
        self.fabric: Fabric | None = None
        self.lock = threading.Lock()
        self.doing = "starting"
        self.operations: dict[str, Callable[[dict[str, Any], Progress], Any]] = {
            "build": self.build,
            "flows": self.flows,
            "groups": self.groups,
            "trace": self.trace,
            "frames": self.frames,
            "reach": self.reach,
            "load": self.load,
            "shaping": self.shaping,
            "write": self.write,
            "copy": self.copy,
        }

    def need_fabric(self) -> Fabric:
        """Return the network, or raise LabError when it is not built or its switches died."""
        if self.fabric is None:
            raise LabError("the lab is not built yet")
        self.ovs.check_alive()
        return self.fabric

    def build(self, request: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Start Open vSwitch and make the network."""
        started = time.monotonic()
        progress("open vswitch")
        order = request["order"]
        datapath = self.ovs.choose_datapath(order["datapath"])
        ports = switch_ports(order)
        count = daemon_count(order["switch_daemons"], datapath, len(os.sched_getaffinity(0)), ports)
        with ThreadPoolExecutor(1) as pool:
            switches = pool.submit(self.ovs.start, divide(ports, count), stock=order["stock"])
            fabric = Fabric(order)
            switches.result()
        ready = round(time.monotonic() - started, 4)
        seconds = {"open vswitch": ready, **fabric.make(self.ovs, progress)}
        self.fabric = fabric
        STATE.write_text(json.dumps({"order": order, "holders": fabric.holders, "datapath": datapath}))
        return {
            "datapath": datapath,
            "switch_daemons": self.ovs.shares,
            "holders": fabric.holders,
            "seconds": seconds,
            "ovs": self.ovs.version(),
            "kernel": os.uname().release,
        }

    def flows(self, request: dict[str, Any], progress: Progress) -> dict[str, list[str]]:
        """Dump the rules of all running switches."""
        del request, progress
        return self.ovs.dump(self.need_fabric().order["switches"])

    def groups(self, request: dict[str, Any], progress: Progress) -> dict[str, list[str]]:
        """Dump the groups of all running switches."""
        del request, progress
        return self.ovs.dump_groups(self.need_fabric().order["switches"])

    def trace(self, request: dict[str, Any], progress: Progress) -> list[str]:
        """Ask switches what they would do with frames: `frames` is a list of (switch, flow)."""
        del progress
        self.need_fabric()
        return self.ovs.trace([(switch, flow) for switch, flow in request["frames"]])

    def frames(self, request: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Everything that counts frames: links, switches, queues, sockets."""
        del request, progress
        fabric = self.need_fabric()
        time.sleep(_STATISTICS_LAG)
        ports = counters.snapshot()["ports"]
        return {
            "ports": {name: count for name, count in ports.items() if "-eth" in name},
            "admitted": counters.admitted_frames(self.ovs.dump(fabric.order["switches"], counters=True)),
            "queue_drops": counters.port_drops(),
            "socket_drops": counters.socket_drops(fabric.holders),
        }

    def reach(self, request: dict[str, Any], progress: Progress) -> list[tuple[str, str]]:
        """Ping all pairs."""
        del request, progress
        fabric = self.need_fabric()
        return reach.unreachable_pairs(fabric.order["hosts"], fabric.holders)

    def load(self, request: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Run the processes of a load."""
        del progress
        return loads.run_load(request, self.need_fabric().holders, self.ovs.check_alive)

    def shaping(self, request: dict[str, Any], progress: Progress) -> list[str]:
        """Differences between the shaping asked for and the kernel's now."""
        del request, progress
        return self.need_fabric().shaping_problems()

    def write(self, request: dict[str, Any], progress: Progress) -> str:
        """Write a file into the lab's folder; returns its path."""
        del progress
        file = FOLDER / request["name"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(request["text"])
        file.chmod(request.get("mode", 0o644))
        return str(file)

    def copy(self, request: dict[str, Any], progress: Progress) -> str:
        """Copy a file into the lab's folder; returns its path, which has neither spaces nor colons."""
        del progress
        return str(shutil.copy(request["source"], FOLDER / request["name"]))

    def status(self) -> dict[str, Any]:
        """What the lab is and does; answered at any time."""
        order = self.fabric.order if self.fabric else {}
        return {
            "doing": self.doing,
            "hosts": len(order.get("hosts", [])),
            "switches": len(order.get("switches", [])),
            "links": len(order.get("links", [])),
            "datapath": self.ovs.datapath,
            "link_rate": order.get("link_rate"),
        }

    def shutdown(self) -> str:
        """End the switches; whoever asked then kills this process, and with it the rest."""
        self.doing = "ending"
        self.ovs.stop()
        return "stopped"

    def answer(self, request: dict[str, Any], progress: Progress) -> Any:
        """Carry out one request."""
        if request["op"] == "status":
            return self.status()
        if request["op"] == "shutdown":
            return self.shutdown()
        operation = self.operations[request["op"]]
        with self.lock:
            self.doing = request["op"]
            try:
                return operation(request, progress)
            finally:
                self.doing = "idle"


def serve(agent: Agent, connection: socket.socket) -> None:
    """Answer one client until it closes."""
    with connection, connection.makefile("rw", encoding="utf-8") as stream:

        def send(message: dict[str, Any]) -> None:
            stream.write(json.dumps(message) + "\n")
            stream.flush()

        for line in stream:
            try:
                send({"result": agent.answer(json.loads(line), lambda text: send({"progress": text}))})
            except BrokenPipeError:
                return
            except (LabError, OSError, subprocess.SubprocessError) as error:
                send({"error": str(error)})


def main() -> None:
    """Prepare the namespaces, then listen."""
    for command in (
        ["mount", "-t", "tmpfs", "-o", "mode=755", "lab", "/run"],
        ["mount", "-t", "sysfs", "lab", "/sys"],
        ["ip", "link", "set", "lo", "up"],
        ["hostname", "localhost"],  # a name that is found without any network
    ):
        subprocess.run(command, check=True)
    FOLDER.mkdir()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    agent = Agent()
    with socket.socket(socket.AF_UNIX) as listener:
        partial = SOCKET.with_suffix(".partial")
        listener.bind(str(partial))
        listener.listen()
        partial.rename(SOCKET)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(agent, connection), daemon=True).start()


if __name__ == "__main__":
    main()
