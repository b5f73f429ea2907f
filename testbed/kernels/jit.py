"""The one way this project compiles."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

# numba's own variable, heeded before numba is imported: in the virtual machine compiling takes longer than it saves.
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"

_IMPORTED = re.compile(rb"^from (testbed\.(?:kernels|emulate\.realtime)\.\w+) import", re.MULTILINE)
_ROOT = Path(__file__).parents[2]

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


@cache
def _stamp(name: str) -> str:
    """Content of a module of kernels and of all modules of kernels that it imports, directly or not."""
    content: dict[str, bytes] = {}
    waiting = [name]
    while waiting:
        module = waiting.pop()
        if module not in content:
            content[module] = (_ROOT / f"{module.replace('.', '/')}.py").read_bytes()
            waiting += [found.decode() for found in _IMPORTED.findall(content[module])]
    return hashlib.sha256(b"".join(content[module] for module in sorted(content))).hexdigest()


def jit(function: Kernel) -> Kernel:
    """Compile a function at its first call and keep the machine code on disk; no Python objects inside.

    It lets go of the interpreter's lock, so threads run kernels side by side. With NUMBA_DISABLE_JIT=1 in the
    environment functions stay what they are.
    """
    return _compiled(function, cache=True, nogil=True)


def jit_inner(function: Kernel) -> Kernel:
    """As jit(), for a function that makes no array and that only kernels call, once an event.

    References to arrays are not counted in it and it is inlined: with dozens of arrays to count and to hand over, a
    call takes longer than what the function does. It has no entry for the interpreter, which would take as long to
    compile as the function.
    """
    inner: Any = _compiled(function, cache=True, nogil=True, _nrt=False, forceinline=True, no_cpython_wrapper=True)

    def keep(result: Any) -> None:
        inner.overloads[tuple(result.signature.args)] = result

    def refuse(*_: object) -> None:
        raise TypeError(f"{function.__name__} is called by kernels only: it has no entry for the interpreter")

    if not INTERPRETED:  # numba would jump to an entry that is not there
        inner.add_overload, inner._compile_for_args = keep, refuse
    return cast(Kernel, inner)


@cache
def _ours(folder: str, owner: int) -> bool:
    """Whether only this user, root and `owner`, who has the code, can have written the machine code that is kept there.

    It is read as pickles, which can do anything.
    """
    place = Path(folder)
    if not place.is_dir():
        return True  # it will be made
    kept = (Path(entry) for entry in os.scandir(place) if entry.name.endswith((".nbi", ".nbc")))
    for one in (place, *kept):
        try:
            status = one.stat()
        except FileNotFoundError:
            continue  # another program has replaced it
        if status.st_uid not in {0, os.geteuid(), owner} or status.st_mode & stat.S_IWOTH:
            return False
    return True


@cache
def _tell() -> None:
    sys.stderr.write(
        "machine code is not kept, because no folder for it can be written, or others can write it, too: each command "
        "compiles anew; NUMBA_CACHE_DIR=FOLDER names one of your own\n"
    )


def _compiled(function: Kernel, **options: bool) -> Kernel:
    if INTERPRETED:
        return function
    import numba  # noqa: PLC0415 - takes 0.2 s

    # Nobody passes kernels to C code, for which numba would compile one more entry. Its types lack `_nrt`.
    decorate: Any = numba.njit
    options["no_cfunc_wrapper"] = True
    try:
        compiled = decorate(**options)(function)
    except RuntimeError:  # neither the project's folder nor the user's home can be written
        compiled = None
    if compiled is None or not _ours(compiled._cache.cache_path, Path(function.__code__.co_filename).stat().st_uid):
        _tell()
        return cast(Kernel, decorate(**{**options, "cache": False})(function))
    # numba itself compiles anew only when the function's own file has changed, but a kernel may call one of another.
    compiled._cache._cache_file._source_stamp = _stamp(function.__module__)
    return cast(Kernel, compiled)
