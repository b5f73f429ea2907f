"""A user of the machine who is not root and has no account entry, for tests that run as root.

The user lives in a mount namespace of its own, which root makes: there the clone is reachable wherever it lies, the
package belongs to the user, as in a clone of its own, so that machine code need not be compiled anew, and
/dev/net/tun is open to everybody, as udev makes it.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.installed import ROOT

_ENTER = """
mount --make-rprivate /
base=$1 uid=$2 clone=$3 closed=$4 tun=$5; shift 5
mount -t tmpfs -o mode=755 user "$base/mounts"
if [ -n "$closed" ]; then
    mkdir "$base/mounts/whole"
    mount --bind "$clone" "$base/mounts/whole"
    mount -t tmpfs -o mode=755 user "$closed"
    mkdir -p "$clone"
    mount --move "$base/mounts/whole" "$clone"
fi
for part in testbed mpi_jobs; do mount --bind "$base/clone/$part" "$clone/$part"; done
mkdir -p /dev/net
[ -e /dev/net/tun ] || touch /dev/net/tun
mknod "$base/mounts/tun" c 10 200
chmod "$tun" "$base/mounts/tun"
mount --bind "$base/mounts/tun" /dev/net/tun
cd "$base/home"
exec setpriv --reuid "$uid" --regid "$uid" --clear-groups --inh-caps -all -- "$@"
"""


class OrdinaryUser:
    """Starts commands as that user, in `home`."""

    def __init__(self, base: Path, uid: int) -> None:
        self.base, self.uid = base, uid
        self.home, self.runtime = base / "home", base / "run"

    def command(self, *words: str, tun: str = "0666") -> list[str]:
        """What root starts to run a command as this user; `tun`: the mode of /dev/net/tun."""
        closed = [folder for folder in ROOT.parents if not folder.stat().st_mode & stat.S_IXOTH]
        place = str(closed[-1]) if closed else ""
        told = (str(self.base), str(self.uid), str(ROOT), place, tun)
        return ["unshare", "--mount", "sh", "-euc", _ENTER, "sh", *told, *words]

    @property
    def environment(self) -> dict[str, str]:
        """Of the test, without what is root's own."""
        own = ("PYTHON", "XDG_", "SUDO_", "NUMBA_CACHE_DIR")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        return {
            **kept,
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
        }

    def run(self, *words: str, tun: str = "0666", **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command as this user; `more` goes into its environment."""
        return subprocess.run(
            self.command(*words, tun=tun), env=self.environment | more, capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL, timeout=250,
        )  # fmt: skip

    def testbed(self, *words: str, tun: str = "0666", **more: str) -> subprocess.CompletedProcess[str]:
        """Run the program as this user."""
        return self.run(sys.executable, "-m", "testbed", *words, tun=tun, **more)

    def write(self, name: str, text: str) -> None:
        """Put a file of this user into `home`."""
        (self.home / name).write_text(text)
        os.chown(self.home / name, self.uid, self.uid)

    def processes(self) -> dict[int, str]:
        """Pid → command of all that runs as this user."""
        found = {}
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and entry.stat().st_uid == self.uid:
                    found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ").strip()
            except OSError:
                continue  # it has ended meanwhile
        return found

    def files(self) -> list[str]:
        """What this user has outside of `home`, where labs could leave something."""
        places = [self.runtime, Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), Path("/run")]
        command = ["find", *map(str, places), "-xdev", "-uid", str(self.uid), "-not", "-path", f"{self.home}*"]
        command += ["-not", "-path", f"{self.base}/clone*", "-not", "-path", str(self.runtime)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


@contextmanager
def ordinary_user(number: int = 0) -> Iterator[OrdinaryUser]:
    """Make a user, another one in each process of tests and for each number."""
    uid = 100_000 + 10 * os.getpid() % 1_000_000 + number
    with TemporaryDirectory(prefix="testbed-user-") as made:
        base = Path(made)
        base.chmod(0o755)
        for part in ("testbed", "mpi_jobs"):
            shutil.copytree(ROOT / part, base / "clone" / part, ignore=shutil.ignore_patterns("*.pyc"))
        for name in ("home", "run"):
            (base / name).mkdir(mode=0o700)
        for folder, _, files in os.walk(base):
            for path in (folder, *(f"{folder}/{file}" for file in files)):
                if path != made:
                    os.chown(path, uid, uid)
        (base / "mounts").mkdir()
        yield OrdinaryUser(base, uid)
