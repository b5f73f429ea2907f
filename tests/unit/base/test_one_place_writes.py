"""Files and folders are made, changed and removed by `testbed.base.files` alone, which no link leads astray."""

from __future__ import annotations

import ast
from pathlib import Path

import testbed

_PACKAGE = Path(testbed.__file__).parent

_PRIVATE = "in /run of a lab, whose namespace no user of the machine is in, and out of its hosts' sight"
_KERNEL = "files of the kernel, which nobody else can make"
_CACHE = "in the clone or in /var/cache, whose owner's code runs as root anyway"
_MADE = "in a folder that this program has just made for itself, with a random name and for nobody else"
# Who else does, and why that is safe.
_OTHERS = {
    "base/files/": "this is the place",
    "engines/lab/control/agent.py": _PRIVATE,
    "engines/lab/control/operations.py": _PRIVATE,
    "engines/lab/control/running_lab.py": _PRIVATE,
    "engines/lab/control/controller.py": _PRIVATE,
    "engines/lab/control/agent_socket.py": _PRIVATE,
    "engines/lab/hosts/run_processes.py": _PRIVATE,
    "engines/lab/hosts/loss_probe.py": _PRIVATE,
    "engines/ovs/openvswitch.py": _PRIVATE,
    "engines/realtime/model_network.py": _PRIVATE,
    "engines/realtime/shared_memory.py": _PRIVATE,
    "engines/realtime/change_plan.py": _PRIVATE,
    "engines/ovs/switch_daemon.py": _PRIVATE,
    "engines/lab/counters/telemetry.py": _PRIVATE,
    "engines/machines/worker.py": f"{_PRIVATE}, or {_MADE}",
    "engines/lab/hosts/host_view.py": "of a host's own namespace, while it is made and no program runs there",
    "engines/lab/hosts/cgroup.py": _KERNEL,
    "engines/lab/hosts/lab_network.py": _KERNEL,
    "engines/realtime/taps.py": _KERNEL,
    "engines/lab/control/record_folder.py": "made for one user, and refused where others can write",
    "engines/vm/modelled.py": "in /var/cache or in the user's own cache",
    "engines/lab/control/registry.py": "in /run/testbed, which is root's and closed to others",
    "engines/lab/hosts/build_mpi_jobs.py": _CACHE,
    "engines/lab/hosts/scenario_mpi_jobs.py": f"{_CACHE}, or beside what is trusted, refused if others can write it",
    "engines/local_machine/local_workers.py": f"{_MADE}, or that an earlier one of this user had",
    "engines/vm/box.py": _CACHE,
    "engines/vm/building.py": _CACHE,
    "engines/vm/image.py": _CACHE,
    "engines/vm/boot.py": _MADE,
    "engines/vm/project.py": f"{_MADE}; what comes back is written by testbed.base.files",
    "engines/lab/control/caller_terminal.py": "the caller's terminal, by its descriptor",
    "engines/lab/control/pty_relay.py": "the device that makes terminals, in a host's own /dev, and /dev/null",
    "base/trust.py": "adds a line to a list that the caller alone can have written, and refuses any other",
    "experiments/run/vm_guest.py": "the serial port of a virtual machine, in it",
    "ui/cli/__init__.py": "/dev/null, and no other",
    "ui/cli/output.py": "/dev/null, and no other",
}
# Methods of files, and functions of os, shutil and others, that make, change or remove one.
_NAMES = {
    "chmod", "chown", "extract", "extractall", "fchown", "hardlink_to", "lchown", "mkdir", "rename", "rmdir", "rmtree",
    "save", "savefig", "savez", "savez_compressed", "symlink_to", "to_csv", "to_excel", "touch", "unlink",
    "write_bytes", "write_text",
}  # fmt: skip
# Of these two modules alone.
_FUNCTIONS = {
    "copy", "copy2", "copyfile", "copytree", "link", "makedirs", "mkfifo", "mknod", "move", "remove", "removedirs",
    "renames", "symlink", "truncate",
}  # fmt: skip
# Those of the same name whose first argument is what they write to, a file or a buffer in memory.
_INTO = {"ZipFile", "save", "savez", "savez_compressed", "to_csv"}
_WRITING_FLAGS = {"O_CREAT", "O_WRONLY", "O_RDWR", "O_TRUNC", "O_APPEND"}
_OPENERS = {"open", "ZipFile", "TarFile", "fdopen", "FileHandler"}
# Objects whose methods are called alike: result folders, arrays, dictionaries, the module itself, messages to a lab.
_OWN = {"files", "folder", "self", "content", "packed", "text", "messages"}


def writes_in(source: str) -> list[tuple[int, str]]:
    """Line and name of each call that may write without the module."""
    tree = ast.parse(source)
    ours = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("testbed")
        for alias in node.names
    }
    return [
        (node.lineno, _name(node))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _name(node) not in ours and _writes(node)
    ]


def _name(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _receiver(call: ast.Call) -> str:
    """The last name of what a method is called of: `folder` of `stage.folder.write_text()`."""
    of = getattr(call.func, "value", None)
    return getattr(of, "attr", getattr(of, "id", ""))


def _writes(call: ast.Call) -> bool:
    name, of = _name(call), _receiver(call)
    into = getattr(call.args[0], "id", "") if call.args else ""
    if name in _OPENERS and into not in _OWN:
        return _opens_for_writing(call)
    if name in ("TemporaryDirectory", "NamedTemporaryFile"):
        return any(word.arg == "dir" for word in call.keywords)
    if name == "replace":  # of a path; that of a text has two arguments, that of a record has keywords
        words = [part for part in call.args if not isinstance(part, ast.Starred)]
        return len(words) == 1 and not call.keywords and not isinstance(call.func, ast.Name)
    if name in _FUNCTIONS:
        return of in ("os", "shutil")
    spared = (name in _INTO and into in _OWN) or (name in ("write_text", "write_bytes") and of in _OWN)
    return name in _NAMES and not spared


def _opens_for_writing(call: ast.Call) -> bool:
    flags = {getattr(node, "attr", "") for part in call.args for node in ast.walk(part)}
    words = [node.value for node in (*call.args, *(word.value for word in call.keywords)) if hasattr(node, "value")]
    modes = [word for word in words if isinstance(word, str) and len(word) < 5 and set(word) <= set("rwaxbt+:gzU")]
    return bool(flags & _WRITING_FLAGS) or any(set(mode) & set("wax+") for mode in modes)


def test_files_are_written_in_one_place_alone():
    found = {}
    for file in sorted(_PACKAGE.rglob("*.py")):
        name = file.relative_to(_PACKAGE).as_posix()
        calls = writes_in(file.read_text(encoding="utf-8"))
        if calls and not any(name.startswith(other) for other in _OTHERS):
            found[name] = calls
    assert not found, "write by testbed.base.files, or say in _OTHERS why not"


def test_every_exception_is_one():
    for other in _OTHERS:
        files = [_PACKAGE / other] if other.endswith(".py") else sorted((_PACKAGE / other).glob("*.py"))
        assert any(writes_in(file.read_text(encoding="utf-8")) for file in files), other


def test_what_writes_is_noticed():
    writing = (
        "file.write_text('')", "Path(a).write_bytes(b)", "os.rename(a, b)", "a.rename(b)", "partial.replace(file)",
        "shutil.rmtree(a)", "shutil.copyfile(a, b)", "open(a, 'w')", "a.open('ab')", "os.open(a, os.O_WRONLY | flags)",
        "a.mkdir(parents=True)", "np.savez(file, a=b)", "os.remove(a)", "a.unlink()", "shutil.move(a, b)", "a.touch()",
        "ZipFile(a, 'w')",
        "tempfile.TemporaryDirectory(dir=a)", "a.open(mode='r+b')", "whole.extractall(folder)", "os.chown(a, 1, 2)",
    )  # fmt: skip
    for line in writing:
        assert writes_in(line), line
    reading = (
        "file.read_text()", "text.replace('a', 'b')", "replace(record, key=1)", "open(a)", "a.open('rb')", "b.copy()",
        "os.open(a, os.O_RDONLY)", "np.savez(content, a=b)", "self.folder.write_text(name, text)", "names.remove(a)",
        "from testbed.base.files import rename\nrename(a, b)",
    )  # fmt: skip
    for line in reading:
        assert not writes_in(line), line
