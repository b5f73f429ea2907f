"""What the virtual machine is made of, the memory that a lab takes in it, and QEMU's command line for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from testbed.base.errors import CapabilityError, argument
from testbed.engines.lab.hosts import available_memory
from testbed.engines.vm.image import Image

Accelerator = Literal["kvm", "tcg", "icount"]
_MEMORY_SLACK = 1 << 30  # of addresses for each file, for the alignment of what is plugged in
# What the guest's clock shows at power-on in virtual time: the same at each run, since all that it computes then is,
# too.
_VIRTUAL_DATE = "2020-01-01T00:00:00"
_KERNEL = "console=ttyS0 panic=-1 psi=1 loglevel=4 net.ifnames=0 mitigations=off"
# Of a translated processor the kernel does not trust the counter, and would ask a device for the time, which takes
# five times as long; QEMU derives the counters of all processors from one. In virtual time there is only one processor,
# and the kernel takes its counter by itself.
_CLOCK = "clocksource=tsc tsc=reliable"
# Translated code is found by its address: where programs and libraries lie at the same ones in every process, it is
# translated once for all.
_PLACES = "norandmaps nokaslr"
# Nor does a translated processor have what only costs there: copying by the byte (an instruction for each), a fifth
# level of page tables, and rights of the kernel that each access to a program's memory switches over.
_TRANSLATED = "max,erms=off,fsrm=off,la57=off,smap=off,smep=off,pku=off"
# In virtual time random numbers come from the processor's instruction, which QEMU seeds; this machine's would differ at
# each run.
_ENTROPY = "random.trust_cpu=on"


@dataclass(frozen=True, slots=True)
class VirtualMachine:
    """A virtual machine."""

    accelerator: Accelerator  # `kvm`; `tcg`, which translates instructions; or `icount`, the same in virtual time
    processors: int  # of the machine
    memory: int  # MiB
    shift: int = 0  # with `icount` one instruction takes 2^shift ns
    seed: int = 1  # with `icount` of the guest's random numbers


def qemu_command(machine: VirtualMachine, image: Image, project: Path, results: Path, console: Path) -> list[str]:
    """Return QEMU's command: standard output carries what the guest reports, the console goes to a file.

    Image and project stay as they are: what the guest writes there goes to QEMU's own memory. /dev/pmem0 is the image,
    pmem1 the project, pmem2 the results.
    """
    more = {"tcg": f" {_CLOCK} {_PLACES}", "icount": f" {_ENTROPY} {_PLACES}"}.get(machine.accelerator, "")
    return [
        *kernel_command(machine, image, console, _KERNEL + more),
        *_memory(machine, {"root": (image.root, "off"), "project": (project, "off"), "results": (results, "on")}),
        # Its queue is served where the guest asks for it. QEMU's other thread would do so at another instruction at
        # each run.
        "-device", "virtio-serial-pci,ioeventfd=off",
        "-chardev", "file,id=report,path=/dev/stdout",  # `stdio` would close with an empty standard input
        "-device", "virtserialport,chardev=report,name=testbed",
    ]  # fmt: skip


def kernel_command(machine: VirtualMachine, image: Image, console: Path, arguments: str) -> list[str]:
    """Return QEMU's command for a machine without disks."""
    return [
        "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35",
        *_accelerator(machine), "-smp", str(machine.processors), "-m", str(machine.memory),
        "-kernel", str(image.kernel), "-initrd", str(image.initrd), "-append", arguments,
        "-chardev", f"file,id=console,path={_escape_commas(console)}", "-serial", "chardev:console",
        *([] if machine.accelerator == "icount" else ["-device", "virtio-rng-pci"]),
    ]  # fmt: skip


def _accelerator(machine: VirtualMachine) -> list[str]:
    if machine.accelerator == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    if machine.accelerator == "tcg":
        return ["-accel", "tcg,thread=multi", "-cpu", _TRANSLATED]
    # In virtual time the guest's clock follows its instructions, and time in which it would only wait is skipped. The
    # thread of QEMU that skips it may find the processor waiting before its last instructions are counted, and then
    # skips a few nanoseconds too many. Where a run is recorded the threads take turns; the record itself is of no use.
    time = ["-icount", f"shift={machine.shift},sleep=off,rr=record,rrfile=/dev/null"]
    time += ["-rtc", f"base={_VIRTUAL_DATE},clock=vm", "-seed", str(machine.seed)]
    return ["-accel", "tcg,thread=single", "-cpu", _TRANSLATED, *time]


def _memory(machine: VirtualMachine, files: Mapping[str, tuple[Path, str]]) -> list[str]:
    """Files as memory that the guest uses without waiting: name → the file, and whether it gets what is written.

    While a guest waits for a disk in virtual time, and has nothing else to do, its clock goes to whatever is due next,
    seconds ahead, and it waits until another instruction at each run.
    """
    sizes = {name: file.stat().st_size for name, (file, _) in files.items()}
    room = (machine.memory << 20) + sum(sizes.values()) + len(files) * _MEMORY_SLACK
    words = ["-machine", "nvdimm=on", "-m", f"slots={len(files)},maxmem={room}"]
    # QEMU's table of them, by which the kernel counts, begins with the last.
    for name, (file, share) in reversed(list(files.items())):
        backend = f"memory-backend-file,id={name},share={share},size={sizes[name]},mem-path={_escape_commas(file)}"
        words += ["-object", backend, "-device", f"nvdimm,memdev={name}"]
    return words


def _escape_commas(file: Path) -> str:
    return str(file).replace(",", ",,")


# MiB, an estimate of the system with the program, each host, each port, each MPI rank; four hosts took 249 in all.
_SYSTEM, _HOST, _PORT, _RANK = 400, 6, 1, 40


def needed_memory(hosts: int, ports: int, ranks: int) -> int:
    """Return MiB that a lab takes in the machine, an upper estimate. `ranks` are the most that run at once."""
    return _SYSTEM + _HOST * hosts + _PORT * ports + _RANK * ranks


NEEDED_BY_TESTS = needed_memory(16, 80, 0)


def require_memory(what: str, needed: int, memory: int, free: int) -> None:
    """Raise CapabilityError unless a lab fits the virtual machine and that fits this one.

    All are MiB: what the lab takes, what the virtual machine has, what this machine has left.
    """
    if needed > memory:
        raise CapabilityError(
            f"{what} takes about {needed} MiB in the virtual machine, which has {memory} MiB; nothing was started; "
            f"give it more with {argument('memory')} {needed}, or choose a smaller scenario"
        )
    if memory > free:
        raise CapabilityError(
            f"the virtual machine takes {memory} MiB, and this machine has {free} MiB left; nothing was started; end "
            f"other programs, or give it less with {argument('memory')} (this needs about {needed} MiB)"
        )


def free_memory() -> int:
    """Return MiB that this machine can give to programs; 0 where it does not say."""
    return (available_memory.free_memory() or 0) >> 20
