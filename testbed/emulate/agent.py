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

from testbed.emulate import cgroup, counters, learning, reach, storm
from testbed.emulate.daemons import daemon_count, divide, switch_ports
from testbed.emulate.fabric import Fabric
from testbed.emulate.host_shares import HostShares
from testbed.emulate.live import BESIDE_LOADS, LiveFabric
from testbed.emulate.openvswitch import OpenVSwitch
from testbed.emulate.watched_loads import WatchedLoads
from testbed.errors import LabError

FOLDER = Path("/run/lab")
SOCKET = FOLDER / "agent.sock"
GROUPS = FOLDER / "cpu"
# Open vSwitch carries the datapath's packet counts over to its rules twice a second.
_STATISTICS_LAG = 1.2
STATE = FOLDER / "state.json"
# Operations that are carried out while another one is under way.
BESIDE = BESIDE_LOADS | {"flows", "groups", "trace", "write", "disturb"}

Progress = Callable[[str], None]


class Agent:
    """State and operations of one lab."""

    def __init__(self) -> None:
        self.ovs = OpenVSwitch(FOLDER / "ovs")
        self.fabric: Fabric | None = None
        self.shares = HostShares()
        self.live = LiveFabric(self.need_fabric)
        self.lock = threading.Lock()
        self.doing = "starting"
        self.operations: dict[str, Callable[[dict[str, Any], Progress], Any]] = {
            "build": self.build,
            "flows": self.flows,
            "groups": self.groups,
            "trace": self.trace,
            "frames": self.frames,
            "reach": self.reach,
            "learn": self.learn,
            "storm": self.storm,
            "reshape": self.reshape,
            "shaping": self.shaping,
            "write": self.write,
            "copy": self.copy,
            "take": self.take,
            **self.live.operations,
            **WatchedLoads(self.need_fabric, self.ovs, self.shares.files, FOLDER).operations,
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
        groups = self.shares.give(order)
        if order["controller"] is not None:
            self.live.start_controller(order["controller"], FOLDER, order["dilation"])  # while Open vSwitch comes up
        datapath = self.ovs.choose_datapath(order["datapath"])
        ports = switch_ports(order)
        alone = order["alone"]
        shared = {name: number for name, number in ports.items() if name not in alone}
        count = daemon_count(order["switch_daemons"], datapath, len(os.sched_getaffinity(0)), shared) if shared else 0
        shares = [*divide(shared, count), *([name] for name in alone)]
        with ThreadPoolExecutor(1) as pool:
            switches = pool.submit(self.ovs.start, shares, stock=order["stock"], order=order["switches"])
            fabric = Fabric(order, groups=groups)
            switches.result()
        ready = round(time.monotonic() - started, 4)
        seconds = {
            "open vswitch": ready,
            **fabric.make(self.ovs, progress, lambda: self.live.bring_rules(order, self.ovs, progress)),
        }
        self.fabric = fabric
        self.write_state()
        return {
            "datapath": datapath,
            "switch_daemons": self.ovs.shares,
            "controller": order["controller"],
            "holders": fabric.holders,
            "groups": groups,
            "cpu_share": self.shares.as_object(),
            "seconds": seconds,
            "ovs": self.ovs.version(),
            "kernel": os.uname().release,
        }

    def reshape(self, request: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Give the links other rates, and the hosts another share of the processors, while the lab stands."""
        del progress
        fabric = self.need_fabric()
        fabric.reshape(request["link_rate"], request["host_rate"])
        if self.shares.given:
            fabric.order["cpu_share"] = request["cpu_share"]
            self.shares.give(fabric.order)
        fabric.order["dilation"] = request["dilation"]
        self.live.tell_dilation(request["dilation"])
        self.write_state()
        return {"cpu_share": self.shares.as_object()}

    def write_state(self) -> None:
        """Store what Mininet's command line needs to adopt the lab."""
        fabric = self.need_fabric()
        state = {"order": fabric.order, "holders": fabric.holders, "datapath": fabric.datapath}
        STATE.write_text(json.dumps({**state, "groups": self.shares.files()}))

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
        rules = self.ovs.dump(fabric.order["switches"], counters=True)
        return {
            "ports": {name: count for name, count in ports.items() if "-eth" in name},
            "admitted": counters.admitted_frames(rules),
            "flooded": counters.flooded_frames(rules),
            "queue_drops": counters.port_drops(),
            "socket_drops": counters.socket_drops(fabric.holders),
        }

    def reach(self, request: dict[str, Any], progress: Progress) -> list[tuple[str, str]]:
        """Ping all pairs."""
        del request, progress
        fabric = self.need_fabric()
        return reach.unreachable_pairs(fabric.order["hosts"], fabric.holders)

    def learn(self, request: dict[str, Any], progress: Progress) -> str:
        """Let every host send a broadcast in each of `vlans`; returns how the frames were made."""
        del progress
        fabric = self.need_fabric()
        slowest = min(fabric.order["link_rate"], fabric.order["host_rate"])
        return learning.teach(fabric.order["hosts"], fabric.holders, request["vlans"], slowest)

    def storm(self, request: dict[str, Any], progress: Progress) -> list[dict[str, Any]]:
        """One broadcast, by other `rules` if given, counted for `seconds` each `every`; then switches have no rules."""
        del progress
        fabric = self.need_fabric()
        return storm.watch(self.ovs, fabric, request.get("rules"), request["seconds"], request["every"])

    def shaping(self, request: dict[str, Any], progress: Progress) -> list[str]:
        """Differences between the shaping and the shares of processors asked for and the kernel's now."""
        del request, progress
        return self.need_fabric().shaping_problems() + self.shares.problems()

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

    def take(self, request: dict[str, Any], progress: Progress) -> str:
        """Text of a file of the lab's folder, written by a load; empty where there is none. The file is taken away."""
        del progress
        file = FOLDER / request["name"]
        text = file.read_text(errors="replace") if file.exists() else ""
        file.unlink(missing_ok=True)
        return text

    def status(self) -> dict[str, Any]:
        """What the lab is and does; answered at any time."""
        order = self.fabric.order if self.fabric else {}
        return {
            "doing": self.doing,
            "hosts": len(order.get("hosts", [])),
            "switches": len(order.get("switches", [])),
            "links": len(order.get("links", [])),
            "datapath": self.ovs.datapath,
            "controller": order.get("controller"),
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
        if request["op"] in BESIDE:  # for instance while a load runs
            return operation(request, progress)
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
    hierarchy = cgroup.find_hierarchy()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "lab", "/run"], check=True)
    FOLDER.mkdir()
    agent = Agent()
    if hierarchy is not None:  # kept in sight before the lab's own /sys hides it
        GROUPS.mkdir()
        subprocess.run(["mount", "--bind", str(hierarchy.root), str(GROUPS)], check=True)
        agent.shares.hierarchy = cgroup.Hierarchy(GROUPS, hierarchy.version)
    for command in (
        ["mount", "-t", "sysfs", "lab", "/sys"],
        ["ip", "link", "set", "lo", "up"],
        ["hostname", "localhost"],  # a name that is found without any network
    ):
        subprocess.run(command, check=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
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
