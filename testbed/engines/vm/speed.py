"""How many instructions a second QEMU translates on this machine, kept from one virtual machine to the next."""

from __future__ import annotations

import json
import math
from contextlib import suppress

from testbed.base.files import make_folder, read_text, write_whole
from testbed.base.limits import parse_json
from testbed.base.resources import CACHE
from testbed.engines.local_machine.calibration import processor_name

_NAME = "vm-speed.json"
# Instructions a second that are believed; others are no machine's.
_LEAST, _MOST = 1e6, 1e11


def read_speed(qemu: str) -> float | None:
    """Instructions a second that this processor did with this QEMU when it was last seen booting; None = never seen."""
    try:
        kept = parse_json(read_text(CACHE / _NAME))
        speed = float(kept["instructions_a_second"])
        same = (kept["processor"], kept["qemu"]) == (processor_name(), qemu)
    except (OSError, ValueError, TypeError, LookupError):
        return None  # there is none, or another version's
    return speed if same and math.isfinite(speed) and _LEAST <= speed <= _MOST else None


def keep_speed(qemu: str, speed: float) -> None:
    """Keep it for the next time; where that cannot be written, the next program does not know it either."""
    kept = {"processor": processor_name(), "qemu": qemu, "instructions_a_second": round(speed)}
    with suppress(OSError):
        make_folder(CACHE)
        write_whole(CACHE / _NAME, (json.dumps(kept) + "\n").encode())
