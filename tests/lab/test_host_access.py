"""What programs in hosts must not be able to do, and what they can do for all that, on every engine that has hosts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from testbed.base.errors import LabError, WorkloadError
from testbed.base.messages import LoadRequest, Process
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.control.client import LabClient
from testbed.experiments.run.engines import find_lab_engine as engine_of
from testbed.experiments.run.loads import run_mpi
from testbed.experiments.run.loads.context import Context
from testbed.scenario.workloads.spec import Mpi

from .conftest import execute, plan_of

pytestmark = pytest.mark.xdist_group("host access")  # each lab is built once

Program = Callable[..., "tuple[int | None, str]"]
_PAIR = "topology: {{kind: mesh, sizes: [2]}}\nengine: {}\nlab: {{dilation: 100, host_access: {}}}\n"
# What a system call says, by its number, with three arguments.
_CALL = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
done = libc.syscall(*(ctypes.c_long(int(word)) for word in sys.argv[1:]))
print("done" if done >= 0 else os.strerror(ctypes.get_errno()))
"""
# What system calls say, each with three arguments, and with others in the upper half of one of them.
_CALLS = """
import ctypes, errno, json, sys
libc = ctypes.CDLL(None, use_errno=True)
said = []
for half in (0, 1 << 32, -1 << 32):
    for numbers, at in zip(json.loads(sys.argv[1]), json.loads(sys.argv[2])):
        numbers[at] |= half
        done = libc.syscall(*map(ctypes.c_long, numbers))
        said.append("done" if done >= 0 else errno.errorcode[ctypes.get_errno()])
print(json.dumps(said))
"""
# Files of /proc that can be opened to be written, with what is in them; nothing is written.
_WRITABLE = """
import json, os
found = {}
for top, folders, files in os.walk("/proc"):
    if top == "/proc":
        folders[:] = [name for name in folders if not name.isdigit() and name not in ("self", "thread-self")]
    for name in files:
        path = os.path.join(top, name)
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK))
        except OSError:
            continue
        try:
            found[path] = open(path).read()
        except OSError:
            found[path] = ""
print(json.dumps(found))
"""
_VALUES = 'import json\nvalues = json.load(open("/run/lab/shared/values"))\n'
_SHOWN = f"""{_VALUES}
def shown(name):
    try:
        return name, open(name).read()
    except OSError:
        return name, ""
print(json.dumps([shown(name) for name in values]))
"""
# Another number in each file that takes one, as near as the kernel takes it.
_CHANGED = f"""{_VALUES}
changed = 0
for name, value in values.items():
    for other in (1, -1):
        try:
            with open(name, "w") as file:
                file.write(str(int(value) + other))
            changed += open(name).read() != value
            break
        except (OSError, ValueError):
            continue
print(changed)
"""
_PUT_BACK = f"""{_VALUES}
for name, value in values.items():
    try:
        with open(name, "w") as file:
            file.write(value)
    except OSError:
        continue
"""
_X86 = os.uname().machine == "x86_64"
_PTRACE, _ATTACH = (101 if _X86 else 117), 16
_INIT_MODULE, _REBOOT, _UNSHARE, _KEYCTL = (175, 169, 272, 250) if _X86 else (105, 142, 97, 219)
_IOCTL, _SOCKET = (16, 41) if _X86 else (29, 198)
_NEW_USERS = 0x10000000


def _lab(engine: str, access: str) -> Iterator[LabClient]:
    plan = plan_of(_PAIR.format(engine, access))
    build = engine_of(plan.scenario).build
    with build(plan, lambda text: None) as lab:
        yield lab


@pytest.fixture(scope="module", params=["ovs", "realtime"])
def lab(request: pytest.FixtureRequest) -> Iterator[LabClient]:
    yield from _lab(request.param, "read")


@pytest.fixture(scope="module")
def closed() -> Iterator[LabClient]:
    """A lab whose hosts see nothing of the machine that they do not need."""
    yield from _lab("ovs", "none")


def program(lab: LabClient, *argv: str, host: str = "h1") -> tuple[int | None, str]:
    """Exit code and all that a program in a host prints."""
    output = lab.run_load(LoadRequest((Process("it", host, argv),), 30.0)).outputs["it"]
    return output.code, output.stdout + output.stderr


def called(lab: LabClient, *numbers: int) -> str:
    code, said = program(lab, sys.executable, "-I", "-c", _CALL, *map(str, numbers))
    assert code == 0, said
    return said.strip()


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A file of the machine that is not below /tmp."""
    file = Path(f"/var/tmp/testbed-{os.getpid()}")
    file.write_text("ours")
    yield file
    file.unlink()


def test_a_file_of_the_machine_can_be_read_and_not_written(lab, outside):
    assert program(lab, "cat", str(outside)) == (0, "ours")
    for command in (f"echo theirs >{outside}", f"rm {outside}", f"touch {outside}.more", "touch /etc/x /usr/x /root/x"):
        code, said = program(lab, "sh", "-c", command)
        assert code != 0
        assert "Read-only file system" in said
    code, said = program(lab, "mount", "-o", "remount,rw", "/")
    assert code != 0, said
    assert outside.read_text() == "ours"


def test_what_is_the_machines_in_proc_and_sys_is_read_only(lab):
    for file in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/swappiness", "/sys/class/net/eth0/mtu"):
        code, said = program(lab, "sh", "-c", f"echo 1 >{file}")
        assert (code != 0, "Read-only file system" in said) == (True, True), said
    # How soon the kernel ends the lab when memory runs out: by the number of process 1, and of one of its threads.
    code, said = program(
        lab, "sh", "-c", "for one in /proc/1/task/*; do echo 900 >/proc/${one##*/}/oom_score_adj; done"
    )
    assert (code != 0, "Read-only file system" in said) == (True, True), said
    assert (lab.namespaces.proc / "1/oom_score_adj").read_text() != "900\n"


def test_what_can_be_written_in_proc_is_the_network_s_own(lab):
    """All that can be opened to be written is looked at: another value for one host is no other for the next.

    A setting of the kernel that cannot be put back is left alone, and may not be writable at all.
    """
    code, said = program(lab, sys.executable, "-I", "-c", _WRITABLE)
    assert code == 0, said
    writable = json.loads(said)
    assert {name.split("/")[3] for name in writable} == {"net"}, writable
    assert len(writable) > 100
    assert not [name for name in writable if "lwtunnel" in name]
    assert {"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/core/somaxconn"} <= writable.keys()
    lab.write("shared/values", json.dumps(writable))
    _, before = program(lab, sys.executable, "-I", "-c", _SHOWN, host="h2")
    outside = {name: _value(name) for name in writable}
    code, said = program(lab, sys.executable, "-I", "-c", _CHANGED)
    assert code == 0, said
    assert json.loads(said) > 50
    try:
        _, now = program(lab, sys.executable, "-I", "-c", _SHOWN, host="h2")
        assert [one for one in zip(json.loads(before), json.loads(now), strict=True) if one[0] != one[1]] == []
        assert {name: _value(name) for name in writable} == outside
    finally:
        assert program(lab, sys.executable, "-I", "-c", _PUT_BACK)[0] == 0


def _value(name: str) -> str | None:
    try:
        return Path(name).read_text()
    except OSError:
        return None


def test_the_processes_of_the_machine_are_not_seen(lab):
    _, said = program(lab, "sh", "-c", "ls /proc")
    seen = {int(word) for word in said.split() if word.isdigit()}
    inside = {int(entry.name) for entry in lab.namespaces.proc.iterdir() if entry.name.isdigit()}
    assert 1 in seen
    assert len(seen - inside) <= 2  # sh and ls, which have ended
    assert program(lab, "kill", "-0", str(max(seen | inside) + 100_000))[0] != 0
    for thing in ("environ", "root/etc/passwd", "mem", "fd/0"):
        code, said = program(lab, "cat", f"/proc/1/{thing}")
        assert (code, "ermission denied" in said or "not permitted" in said) == (1, True), said


def test_the_network_of_the_machine_is_not_reached(lab):
    _, said = program(lab, "ls", "/sys/class/net")
    assert set(said.split()) == {"eth0", "lo"}
    _, said = program(lab, "ip", "route")
    assert [line.split()[0] for line in said.splitlines()] == ["10.0.0.0/8"]
    code, said = program(lab, "nsenter", "--net=/proc/1/ns/net", "true")
    assert (code, "not permitted" in said or "denied" in said) == (1, True), said
    # Virtual machines' sockets know no namespaces.
    code, said = program(lab, sys.executable, "-I", "-c", "import socket; socket.socket(socket.AF_VSOCK)")
    assert (code, "Address family not supported" in said) == (1, True), said


def test_no_door_of_the_lab_or_of_a_daemon_is_open(lab):
    code, said = program(lab, "sh", "-c", "find /run /tmp /dev/shm -type s; ls /run/lab; ls /dev")
    assert code == 0
    assert said.split()[0] == "shared"
    assert not {"sda", "vda", "mem", "kmsg", "kvm", "loop0"} & set(said.split())
    code, said = program(lab, "mknod", "/tmp/disk", "b", "8", "0")
    assert (code, "Operation not permitted" in said) == (1, True)


def test_nothing_is_loaded_into_the_kernel_nor_looked_into(lab):
    assert called(lab, _INIT_MODULE, 0, 0, 0) == "Operation not permitted"
    assert called(lab, _REBOOT, 0, 0, 0) == "Operation not permitted"
    assert called(lab, _PTRACE, _ATTACH, 1, 0) == "Operation not permitted"
    assert called(lab, _PTRACE, 0, 0, 0) == "Operation not permitted"  # not even its own
    assert called(lab, _KEYCTL, 0, -3, 0) == "Operation not permitted"


def test_no_terminal_input_nor_escape_by_upper_argument_halves(lab):
    """The kernel looks at 32 bits of these arguments only."""
    requests = {"TIOCSTI": 0x5412, "TIOCLINUX": 0x541C, "TIOCCONS": 0x541D, "TIOCSETD": 0x5423, "TCGETS": 0x5401}
    calls = {name: (_IOCTL, 0, number, 0) for name, number in requests.items()} | {"vsock": (_SOCKET, 40, 1, 0)}
    at = {name: 2 if numbers[0] == _IOCTL else 1 for name, numbers in calls.items()}
    code, said = program(
        lab, sys.executable, "-I", "-c", _CALLS, json.dumps([*calls.values()]), json.dumps([*at.values()])
    )
    assert code == 0, said
    refused = dict.fromkeys(requests, "EPERM") | {"TCGETS": "ENOTTY", "vsock": "EAFNOSUPPORT"}
    assert json.loads(said) == [refused[name] for name in calls] * 3


def test_rights_do_not_come_back(lab):
    assert called(lab, _UNSHARE, _NEW_USERS) == "Operation not permitted"
    _, said = program(lab, "cat", "/proc/self/status")
    status = dict(line.split(":\t", 1) for line in said.splitlines() if ":\t" in line)
    # chown, dac_override, fowner, kill, setgid, setuid, net_bind_service, net_broadcast, net_admin, net_raw
    rights = sum(1 << number for number in (0, 1, 3, 5, 6, 7, 10, 11, 12, 13))
    assert {int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd")} == {rights}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_a_host_has_places_of_its_own(lab):
    writing = 'pwd; echo "$HOME $TMPDIR"; for at in . /run /dev/shm; do echo mine >$at/mine; done; ls /tmp'
    code, said = program(lab, "sh", "-c", writing)
    # A folder that is shown may be below the machine's /tmp.
    assert (code, said.split()[:3], "mine" in said.split()[3:]) == (0, ["/tmp", "/tmp", "/tmp"], True)
    code, said = program(lab, "ls", "/tmp", host="h2")
    assert (code, "mine" in said.split()) == (0, False)
    assert not Path("/tmp/mine").exists()
    assert program(lab, "sh", "-c", "echo all >/run/lab/shared/all")[0] == 0
    assert program(lab, "cat", "/run/lab/shared/all", host="h2") == (0, "all\n")
    assert lab.pop_file("shared/all") == "all\n"


def test_the_tools_of_networks_work(lab):
    assert program(lab, "ping", "-c", "1", "-W", "5", "10.0.0.2")[0] == 0
    capture = "tcpdump -i eth0 -c 1 -w /tmp/it.pcap icmp & sleep 1; ping -c 2 10.0.0.2 >/dev/null; wait; ls /tmp"
    code, said = program(lab, "sh", "-c", capture)
    assert (code, "1 packet captured" in said, "it.pcap" in said) == (0, True, True), said
    setting = "sysctl -qw net.ipv4.ip_forward=1 && sysctl -n net.ipv4.ip_forward && ip address add 10.9.9.9/32 dev lo"
    assert program(lab, "sh", "-c", setting) == (0, "1\n")


def test_nobody_leads_the_lab_astray_by_a_link(lab, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("ours")
    assert program(lab, "ln", "-s", str(victim), "/run/lab/shared/trap")[0] == 0
    with pytest.raises(LabError, match="leads elsewhere"):
        lab.pop_file("shared/trap")
    lab.write("shared/trap", "theirs")
    assert victim.read_text() == "ours"
    assert lab.pop_file("shared/trap") == "theirs"


def test_a_hidden_folder_is_shown_on_demand_and_only_to_be_read(lab, tmp_path):
    (tmp_path / "data").write_text("seen")
    assert program(lab, "cat", str(tmp_path / "data"))[0] == 1
    lab.share_folder(tmp_path, ["h1"])
    assert program(lab, "cat", str(tmp_path / "data")) == (0, "seen")
    assert program(lab, "cat", str(tmp_path / "data"), host="h2")[0] == 1
    assert "Read-only file system" in program(lab, "touch", str(tmp_path / "data"))[1]
    with pytest.raises(LabError, match="cannot be shown to hosts: No such file"):
        lab.share_folder(tmp_path / "missing")


def test_with_none_a_host_sees_what_programs_need(closed, tmp_path):
    place = next(top for top in ("/home", "/root", "/srv") if Path(top).is_dir())
    assert program(closed, "ls", "-A", place) == (0, "")
    assert program(closed, "cat", "/etc/shadow") == (0, "")
    assert program(closed, sys.executable, "-c", "import testbed; print(1)")[0] == 0
    found = run_mpi.run_mpi(
        Context(closed.plan(), closed, {}, lambda name, text: None, lambda text: None),
        Mpi("fabric_bench", ("--tests", "barrier", "--repeats", "2")),
    )
    assert any(sample.metric == "mpi_barrier_time" for sample in found.samples)


def test_with_write_a_host_may_do_what_root_may(outside, tmp_path):
    with build_lab(plan_of(_PAIR.format("ovs", "write"))) as lab:
        file = tmp_path / "theirs"
        assert program(lab, "sh", "-c", f"echo theirs >{file}; echo theirs >{outside}")[0] == 0
        assert (file.read_text(), outside.read_text()) == ("theirs\n", "theirs\n")
        assert "Seccomp:\t0" in program(lab, "cat", "/proc/self/status")[1]


def test_a_rank_is_a_program_of_its_host(lab, tmp_path):
    """It starts in its own folder, and can do no more than other programs."""
    job = tmp_path / "looks"
    job.mkdir()
    (job / "job.yaml").write_text(
        "name: looks\ndescription: looks around\nbinary: looks.py\ninterpreter: python\nsuccess: LOOKED\noutput: free\n"
    )
    (job / "looks.py").write_text(
        "import os\nfrom pathlib import Path\nfrom mpi4py import MPI\nMPI.COMM_WORLD.bcast(bytes(1000))\n"
        "MPI.COMM_WORLD.Barrier()\nPath('note').write_text('x')\nstatus = Path('/proc/self/status').read_text()\n"
        "assert 'NoNewPrivs:\\t1' in status and 'Seccomp:\\t2' in status, status\n"
        "assert os.getcwd() == '/tmp' and (Path(os.environ['TESTBED_JOB']) / 'looks.py').exists()\n"
        "try:\n    Path('/etc/x').write_text('x')\nexcept OSError:\n    print('LOOKED')\n"
    )
    context = Context(lab.plan(), lab, {}, lambda name, text: None, lambda text: None)
    run_mpi.run_mpi(context, Mpi(str(job), trace=True))


def test_a_job_that_is_killed_leaves_nothing_in_the_machines_tmp(closed, tmp_path):
    (tmp_path / "job.yaml").write_text(
        "name: sleeps\ndescription: sleeps\nbinary: sleeps.py\ninterpreter: python\nsuccess: NEVER\noutput: free\n"
    )
    (tmp_path / "sleeps.py").write_text("import time\nfrom mpi4py import MPI\ntime.sleep(60)\n")
    before = set(Path("/tmp").glob("hydra_*"))
    context = Context(closed.plan(), closed, {}, lambda name, text: None, lambda text: None)
    with pytest.raises(WorkloadError, match="did not end in 3 s"):
        run_mpi.run_mpi(context, Mpi(str(tmp_path), time_limit=3.0))
    assert set(Path("/tmp").glob("hydra_*")) <= before


_DIES = """
import os, signal, sys, time
from mpi4py import MPI

MPI.COMM_WORLD.Barrier()
if MPI.COMM_WORLD.Get_rank() == 1 and len(sys.argv) > 1:
    os.kill(os.getpid(), getattr(signal, sys.argv[1]))
time.sleep(60)
"""


def run_that_dies(lab: LabClient, folder: Path, *arguments: str) -> None:
    (folder / "job.yaml").write_text(
        "name: dies\ndescription: dies\nbinary: dies.py\ninterpreter: python\nsuccess: NEVER\noutput: free\n"
    )
    (folder / "dies.py").write_text(_DIES)
    context = Context(lab.plan(), lab, {}, lambda name, text: None, lambda text: None)
    run_mpi.run_mpi(context, Mpi(str(folder), arguments, time_limit=30.0))


@pytest.mark.parametrize(("number", "name"), [("SIGKILL", r"9 \(Killed\)"), ("SIGSEGV", r"11 \(Segmentation fault\)")])
def test_a_rank_that_dies_is_told_with_the_signal(closed, tmp_path, number, name):
    with pytest.raises(WorkloadError, match=f"a rank was killed by signal {name}$"):
        run_that_dies(closed, tmp_path, number)


def test_an_mpiexec_that_dies_is_told(closed, tmp_path):
    def kill() -> None:
        until = time.monotonic() + 20
        while time.monotonic() < until:
            found = {}
            for entry in closed.namespaces.proc.glob("[0-9]*"):
                with suppress(OSError):
                    found[(entry / "comm").read_text().strip().removesuffix(".hydra")] = entry.name
            if {"mpiexec", "hydra_pmi_proxy"} <= set(found):
                inside = ["nsenter", "--target", str(closed.namespaces.init), "--pid", "--mount", "--"]
                subprocess.run([*inside, "kill", "-KILL", found["mpiexec"]], check=True)
                return
            time.sleep(0.05)

    with ThreadPoolExecutor(1) as pool:
        killing = pool.submit(kill)
        with pytest.raises(WorkloadError, match=r"mpiexec was killed, as by SIGKILL, and with it all ranks$"):
            run_that_dies(closed, tmp_path)
        killing.result()


def test_hosts_that_die_are_named_with_the_signal(untouched):
    with build_lab(plan_of(_PAIR.format("ovs", "read"))) as lab:
        with pytest.raises(LabError, match=r"h2 died \(the process that keeps h2 was killed by signal 9\)"):
            execute(lab, "sh", "-c", f"kill -9 {lab.facts.holders['h2']}; sleep 5")
        with pytest.raises(LabError, match="h2 died"):
            lab.reach()


def test_a_stopped_switch_daemon_is_named(untouched):
    with (
        build_lab(plan_of(_PAIR.format("ovs", "read"))) as lab,
        pytest.raises(LabError, match="ovs-vswitchd is stopped, as by SIGSTOP"),
    ):
        execute(lab, "sh", "-c", "kill -STOP $(cat /run/lab/ovs/ovs-vswitchd.pid); sleep 5")


def test_commands_typed_into_hosts_are_shut_in_too(untouched, outside):
    from testbed.engines.lab.control import registry  # noqa: PLC0415 - as a program would

    plan, name = plan_of(_PAIR.format("ovs", "read")), f"shut-{os.getpid()}"
    with build_lab(plan) as lab:
        registry.register(name, lab.namespaces, plan.scenario.name, plan.digest)
        try:
            command = [sys.executable, "-m", "testbed"]
            typed = [
                *command,
                "exec",
                name,
                "h1",
                "--",
                "sh",
                "-c",
                f"echo x >{outside}; grep Seccomp: /proc/self/status",
            ]
            done = subprocess.run(typed, capture_output=True, text=True, check=False)
            assert "Read-only file system" in done.stderr
            assert done.stdout == "Seccomp:\t2\n"
            words = f"h1 echo x >{outside}\nh1 grep -e Seccomp: -e NoNew /proc/self/status\nexit\n"
            done = subprocess.run([*command, "shell", name], input=words, capture_output=True, text=True, check=False)
            said = done.stdout + done.stderr
            assert "Read-only file system" in said
            assert "NoNewPrivs:\t1" in said
            assert "Seccomp:\t2" in said
        finally:
            registry.forget(registry.find(name))
    assert outside.read_text() == "ours"
