"""What the virtual machine is made of, and QEMU's command line for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from testbed.emulate.vm.image import Image

Accelerator = Literal["kvm", "tcg", "icount"]
# One instruction of the guest takes 2^ICOUNT_SHIFT ns of its time: see docs/vm.md.
ICOUNT_SHIFT = 1
_KERNEL = "console=ttyS0 panic=-1 psi=1 loglevel=4 net.ifnames=0 mitigations=off"
# Of a translated processor the kernel does not trust the counter, and would ask a device for the time, which takes
# five times as long; QEMU derives the counters of all processors from one. Not tried in virtual time.
_CLOCK = "clocksource=tsc tsc=reliable"


@dataclass(frozen=True, slots=True)
class Machine:
    """A virtual machine.

    Attributes:
        accelerator: `kvm`; `tcg`, which translates instructions; or `icount`, the same in virtual time.
        processors: of the machine.
        memory: MiB.
    """

    accelerator: Accelerator
    processors: int
    memory: int


def qemu_command(machine: Machine, image: Image, project: Path, results: Path, console: Path) -> list[str]:
    """Return QEMU's command: standard output carries what the guest reports, the console goes to a file.

    Args:
        machine: what to start.
        image: stays as it is: what the guest writes goes to a nameless file beside it that ends with QEMU.
        project: archive, the second disk.
        results: what the guest hands back, the third disk.
        console: file that gets all the kernel and process 1 print.
    """
    clock = f" {_CLOCK}" if machine.accelerator == "tcg" else ""
    return [
        *kernel_command(machine, image, console, _KERNEL + clock),
        "-drive", _drive(image.root, "snapshot=on,cache=unsafe"),
        "-drive", _drive(project, "readonly=on"),
        "-drive", _drive(results, "cache=unsafe"),
        "-device", "virtio-serial-pci",
        "-chardev", "file,id=report,path=/dev/stdout",  # `stdio` would close with an empty standard input
        "-device", "virtserialport,chardev=report,name=testbed",
    ]  # fmt: skip


def kernel_command(machine: Machine, image: Image, console: Path, arguments: str) -> list[str]:
    """Return QEMU's command for a machine without disks."""
    return [
        "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35",
        *_ACCELERATORS[machine.accelerator], "-smp", str(machine.processors), "-m", str(machine.memory),
        "-kernel", str(image.kernel), "-initrd", str(image.initrd), "-append", arguments,
        "-chardev", f"file,id=console,path={_escaped(console)}", "-serial", "chardev:console",
        "-device", "virtio-rng-pci",
    ]  # fmt: skip


# In virtual time the guest's clock follows its instructions, and time in which it would only wait is skipped.
_ACCELERATORS: dict[Accelerator, tuple[str, ...]] = {
    "kvm": ("-accel", "kvm", "-cpu", "host"),
    "tcg": ("-accel", "tcg,thread=multi", "-cpu", "max"),
    "icount": (
        "-accel", "tcg,thread=single", "-cpu", "max", "-icount", f"shift={ICOUNT_SHIFT},sleep=off", "-rtc", "clock=vm",
    ),
}  # fmt: skip


def _drive(file: Path, options: str) -> str:
    return f"file={_escaped(file)},format=raw,if=virtio,{options}"


def _escaped(file: Path) -> str:
    return str(file).replace(",", ",,")
