"""What this machine can do, found out by trying; what is missing, what that costs, and how to get it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

from testbed.base.errors import CapabilityError
from testbed.base.python_isolation import FOLDER, clean_environment, find_python, make_module_command
from testbed.base.resources import setup
from testbed.engines.lab.counters import pair_counters
from testbed.engines.lab.hosts import cgroup, host_view, seccomp
from testbed.engines.local_machine import user_namespace
from testbed.engines.ovs import fast_path
from testbed.engines.ovs.netem import MISSING
from testbed.scenario import Scenario
from testbed.scenario.workloads import WORKLOADS
from testbed.scenario.workloads.spec import events_of

OPENFLOW = "openflow framework"
NETEM = "netem"
TAPS, SWITCHES, MININET = "taps", "open vswitch", "mininet"
_OF_SWITCHES = {SWITCHES, MININET}  # which modelled switches do without
SHUT_IN = "hosts shut in"
ROOTLESS = "labs without root"
TUN = "/dev/net/tun"
_LIMIT = 20.0
_SETUP = setup()
_NO_SWITCHES = "no lab of Open vSwitch can be built; one of modelled switches can (engine: realtime)"
_VETH = "ip link add probe0 type veth peer name probe1; "
_KERNEL_OVS = (
    "mount -t tmpfs probe /run; export OVS_RUNDIR=/run; "
    "ovs-dpctl add-dp system@testbed-probe && ovs-dpctl del-dp system@testbed-probe"
)


@dataclass(frozen=True, slots=True)
class Capability:
    """One thing a lab can use."""

    name: str  # what it is
    present: bool  # whether it works here
    needed: bool  # whether every lab needs it
    detail: str  # what was found
    consequence: str  # what cannot be had without it
    remedy: str  # how to get it


@dataclass(frozen=True, slots=True)
class _Trial:
    """A capability that a script tries in a network namespace of its own; other fields as there."""

    name: str
    script: str
    consequence: str
    remedy: str
    needed: bool = True

    def run(self) -> Capability:
        try:
            done = _run_apart("sh", "-ec", self.script)
            works, lines = done.returncode == 0, done.stderr.strip().splitlines()
            detail = "works" if works else (lines[-1] if lines else "does not work")
        except subprocess.TimeoutExpired:
            works, detail = False, f"did not answer in {_LIMIT:g} s"
        return Capability(self.name, works, self.needed, detail, self.consequence, self.remedy)


_NAMESPACES = _Trial(
    "namespaces",
    "true",
    "no lab can be built",
    "run on a machine that allows unshare; a container needs CAP_SYS_ADMIN",
)
_TRIALS = (
    _Trial(
        "veth",
        _VETH + "true",
        "no lab can be built",
        "load the module veth; a container needs CAP_NET_ADMIN",
    ),
    _Trial(
        "htb shaping",
        _VETH + "tc qdisc add dev probe0 root handle 1: htb default 1",
        "links cannot be shaped, so no lab is built",
        "load the module sch_htb; a container needs CAP_NET_ADMIN",
    ),
    _Trial(
        "kernel datapath",
        _KERNEL_OVS,
        "the userspace datapath is used: a few hundred Mbit/s in all instead of many Gbit/s",
        "load the module openvswitch (package linux-modules-extra on some systems)",
        needed=False,
    ),
    _Trial(
        NETEM,
        _VETH + "tc qdisc add dev probe0 root netem delay 1ms loss 1%",
        "links get neither delay nor loss (testbed link, timeline:); rate, down and up work",
        "load the module sch_netem (package linux-modules-extra on some systems)",
        needed=False,
    ),
    _Trial(
        "802.1q interfaces",
        _VETH + "ip link add link probe0 name probe0.10 type vlan id 10",
        "MAC learning is primed by raw tagged frames",
        "load the module 8021q",
        needed=False,
    ),
    _Trial(
        TAPS,
        "ip tuntap add dev probe0 mode tap",
        "hosts cannot be joined to modelled switches, so engine: realtime does not run",
        "load the module tun, or give the container /dev/net/tun",
        needed=False,
    ),
    _Trial(
        "held packets",
        "iptables -t mangle -A POSTROUTING -j NFQUEUE --queue-num 0",
        "with engine: realtime hosts do not feel that the fabric pauses, and lose what finds their own queue full",
        "install iptables, and load the modules nfnetlink_queue and xt_NFQUEUE",
        needed=False,
    ),
    _Trial(
        "real-time priority",
        "chrt --fifo 10 true",
        "with engine: realtime other programs take the model's processor, and frames come late on a busy machine",
        "allow it (CAP_SYS_NICE, or ulimit -r; in cgroup v1 cpu.rt_runtime_us)",
        needed=False,
    ),
)


_FAST_PATH = _Trial(
    "fast path",
    _VETH + "mount -t bpf bpf /sys; tc qdisc add dev probe0 ingress; "
    "tc filter add dev probe0 ingress bpf bytecode '1,6 0 0 0' direct-action",
    "the userspace datapath passes on every frame, at a larger dilation (lab.fast_path); on the kernel's TCP loses too "
    "few frames, since hosts' sockets wait for queues of switches, too",
    "use Linux 5.6 or newer with BPF_SYSCALL, NET_CLS_BPF and NET_SCH_INGRESS, and a container that allows bpf()",
    needed=False,
)


def _run_apart(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in throw-away namespaces, as a lab's are; nothing tried in them can be seen outside."""
    return subprocess.run(
        ["unshare", *user_namespace.unshare_options(), "--net", "--mount", "--pid", "--fork", "--kill-child",
         "--mount-proc", *command],
        capture_output=True, text=True, timeout=_LIMIT, check=False, cwd=FOLDER,
        env={**clean_environment(), "PATH": _path()},
    )  # fmt: skip


@cache
def capabilities() -> tuple[Capability, ...]:
    """Try everything a lab uses; takes a fraction of a second, changes nothing."""
    found = [
        *_rights(),
        _commands(SWITCHES, ("ovs-vswitchd", "ovsdb-server", "ovs-vsctl", "ovs-ofctl", "ethtool"), _NO_SWITCHES),
        _mininet(),
        _commands("network tools", ("ip", "tc", "unshare", "nsenter", "setpriv"), "no lab can be built"),
        _commands("fping", ("fping",), "paths cannot be checked by pings, so no load is run"),
        _commands("iperf3", ("iperf3",), "iperf3 loads cannot run", needed=False),
        _commands("ping", ("ping",), "ping loads cannot run", needed=False),
        _commands("compiler", ("gcc", "make"), "MPI jobs cannot be built", needed=False),
        _mpich(),
        _openflow(),
    ]
    if all(one.present for one in found if one.needed and one.name not in _OF_SWITCHES):
        found.append(_NAMESPACES.run())
    if found[-1].name == _NAMESPACES.name and found[-1].present:
        with ThreadPoolExecutor() as pool:
            found += pool.map(_Trial.run, _TRIALS)
        if closed := _tun_closed():
            detail, _, remedy = closed.partition("; ")
            found = [replace(c, detail=detail, remedy=remedy) if c.name == TAPS and not c.present else c for c in found]
        found += _try_here() if user_namespace.is_root() else _try_inside()
    pressure = Path("/proc/pressure/cpu").exists()
    found.append(
        Capability(
            "pressure stall information",
            pressure,
            False,
            "/proc/pressure/cpu" if pressure else "not there",
            "the verdict rests on idle time alone",
            "boot with psi=1",
        )
    )
    return tuple(found)


def prefetch_capabilities() -> Thread:
    """Begin with capabilities() while other things are done; who waits for the thread's end finds them known."""

    def look() -> None:
        with suppress(RuntimeError):  # the program has come to its end, and no thread is started any more
            capabilities()

    looking = Thread(target=look, daemon=True)
    looking.start()
    return looking


def _commands(name: str, programs: Sequence[str], consequence: str, *, needed: bool = True) -> Capability:
    missing = [program for program in programs if shutil.which(program, path=_path()) is None]
    detail = f"missing: {', '.join(missing)}" if missing else ", ".join(programs)
    return Capability(name, not missing, needed, detail, consequence, _SETUP)


def _mininet() -> Capability:
    """Its program and its Python module, which is the system's."""
    found = _commands(MININET, ("mnexec",), _NO_SWITCHES)
    if not found.present or find_spec("mininet") is not None:
        return found
    return replace(found, present=False, detail=f"{find_python()} does not find the Python module mininet")


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"


def _mpich() -> Capability:
    program = Path(sys.prefix) / "bin" / "mpicc"
    present = program.exists()
    return Capability(
        "mpich", present, False, str(program) if present else "not in this environment", "MPI jobs cannot run", _SETUP
    )


def _openflow() -> Capability:
    found = [name for name in ("os_ken", "ryu") if find_spec(name) is not None]
    detail = found[0] if found else "neither os_ken nor ryu in this environment"
    return Capability(OPENFLOW, bool(found), False, detail, "labs run with lab.controller: none only", _SETUP)


def _rights() -> list[Capability]:
    """By which of both ways this program can build labs: as root, or without."""
    root, user = user_namespace.is_root(), os.geteuid()
    why_not = user_namespace.why_not_others() if root else user_namespace.why_not()
    who = "running as root" if root else "running as root without its rights" if user == 0 else "as an ordinary user"
    without = "works for ordinary users" if root else f"works: {' '.join(user_namespace.unshare_options())}"
    return [
        Capability(
            "root", root, False, who.replace("as an", "running as an"),
            "labs have no fast path, and what else needs the whole machine's rights (docs/rootless.md)",
            "run the command with sudo",
        ),
        Capability(
            ROOTLESS, not why_not, not root, why_not or without,
            "ordinary users can build no lab; planning and reports work" if root else "no lab can be built; planning "
            "and reports work",
            "see there" if why_not else "",
        ),
    ]  # fmt: skip


def _try_here() -> list[Capability]:
    """What this program tries by itself."""
    works, detail = cgroup.try_shares()
    shares = Capability(cgroup.CAPABILITY, works, False, detail, cgroup.CONSEQUENCE, cgroup.REMEDY)
    return [_raw_sockets(), _fast_path(), _pairs(), _shut_in(), shares]


def _try_inside() -> list[Capability]:
    """As _try_here(), by a program that is root in a user namespace, as a lab's process 1 is.

    Raises:
        CapabilityError: it fails.
    """
    done = _run_apart(*make_module_command(__name__))
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise CapabilityError(f"what a lab without root can do cannot be tried: {said[-1] if said else 'no reason'}")
    return [Capability(**one) for one in json.loads(done.stdout)]


def _raw_sockets() -> Capability:
    """By which switches take frames from links, and hosts ping."""
    why_not = ""
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    except OSError as error:
        why_not = str(error.strerror)
    return Capability(
        "raw sockets", not why_not, True, why_not or "works", "no lab can be built", "a container needs CAP_NET_RAW"
    )


def _pairs() -> Capability:
    why_not = pair_counters.why_not()
    return Capability(
        "traffic matrix", not why_not, False, why_not or "works", "results do not tell who sent how much to whom",
        "use a kernel with BPF_SYSCALL and NET_CLS_BPF, and a container that allows bpf()",
    )  # fmt: skip


def _fast_path() -> Capability:
    """Whether the kernel takes its programs, and then whether ports and sockets can have them."""
    found, why_not = _FAST_PATH.run(), fast_path.why_not()
    return replace(found, present=False, detail=why_not) if why_not else found


def _shut_in() -> Capability:
    why_not = host_view.why_not() or seccomp.why_not()
    return Capability(
        SHUT_IN, not why_not, False, why_not or "works",
        "hosts' programs cannot be kept from the machine, so labs are built with lab.host_access: write only",
        f"use Linux 5.12 or newer with SECCOMP_FILTER, in a container add CAP_MKNOD, and {seccomp.REMEDY}",
    )  # fmt: skip


def require(scenario: Scenario) -> None:
    """Raise CapabilityError, with consequence and remedy, when this machine cannot run a scenario."""
    # A model's switches are no program.
    require_all(list_needed_capabilities(scenario), _OF_SWITCHES if scenario.carrier == "realtime" else ())


def list_needed_capabilities(scenario: Scenario) -> set[str]:
    """Names of the capabilities that a scenario needs beside those of every lab."""
    names = {name for load in scenario.workloads for name in WORKLOADS[load.kind].needs}
    if scenario.lab.datapath == "kernel":
        names.add("kernel datapath")
    if scenario.lab.cpu_share != "none":
        names.add(cgroup.CAPABILITY)
    if scenario.lab.controller != "none":
        names.add(OPENFLOW)
    if scenario.lab.host_access != "write":
        names.add(SHUT_IN)
    if any(event.words.delay or event.words.loss for load in scenario.workloads for event in events_of(load.spec)):
        names.add(NETEM)
    return {TAPS, *names} - {NETEM, OPENFLOW} if scenario.carrier == "realtime" else names


def require_all(names: Collection[str], spared: Collection[str] = ()) -> None:
    """Raise CapabilityError when this machine lacks one of some capabilities, or one of those of every lab.

    `spared`: those of the latter that are not needed.
    """
    lacking = [c for c in capabilities() if not c.present and (c.needed or c.name in names) and c.name not in spared]
    if lacking:
        raise CapabilityError([f"{c.name}: {c.detail}: {c.consequence}; {c.remedy}" for c in lacking])


def _tun_closed() -> str:
    """Why an ordinary user can make no taps, with what to do; empty where the device is not the reason."""
    if not os.path.exists(TUN) or os.access(TUN, os.R_OK | os.W_OK):  # noqa: PTH110 - a text
        return ""
    return f"{TUN} is closed to you; sudo chmod 0666 {TUN}, as udev has it"


def require_netem() -> None:
    """Raise CapabilityError where links can have neither delay nor loss."""
    (trial,) = (trial for trial in _TRIALS if trial.name == NETEM)
    if not trial.run().present:
        raise CapabilityError(MISSING)


def versions() -> dict[str, str]:
    """First line of what each tool says of its version; tools that are missing are left out."""
    asked = {
        "iperf3": ["iperf3", "--version"],
        "mininet": ["dpkg-query", "--show", "--showformat=${Version}", "mininet"],
        "iproute2": ["ip", "-V"],
        "mpich": [str(Path(sys.prefix) / "bin" / "mpichversion"), "-v"],
    }
    found = {}
    for name, command in asked.items():
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=_LIMIT,
                check=False,
                env={**os.environ, "PATH": _path()},
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0 and done.stdout.strip():
            found[name] = " ".join(done.stdout.split("\n", 1)[0].split())
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps([asdict(one) for one in _try_here()]))
