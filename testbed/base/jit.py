"""The one way this project compiles."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from functools import cache, update_wrapper
from pathlib import Path
from typing import Any, TypeVar, cast

from testbed.base.machine_code import is_trusted

# numba's own variable, heeded before numba is imported: in the virtual machine compiling takes longer than it saves.
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
# With TESTBED_INTERPRET=0 nothing is interpreted for being small: what is to be compiled beforehand would not be.
_MAY_INTERPRET = os.environ.get("TESTBED_INTERPRET", "1") != "0"
# Loading numba and the machine code of half a dozen kernels takes 0.5 s and more, and about as long as Python takes for
# calls that together last this long, each of them on so few numbers.
_SECONDS, _NUMBERS = 0.3, 3000

_IMPORTED = re.compile(
    rb"^from (testbed\.(?:(?:\w+\.kernels|engines\.realtime)\.\w+|base\.ethernet)) import", re.MULTILINE
)
_ROOT = Path(__file__).parents[2]

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


@cache
def _stamp(name: str) -> str:
    """Content of a module of kernels and of all modules with kernels, or with what they call, that it imports."""
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
    return _compile_kernel(function, cache=True, nogil=True)


def jit_unless_small(function: Kernel) -> Kernel:
    """As jit(), for what takes a time that its arguments bound: small ones are interpreted, until that adds up.

    Most fabrics of examples, and what is planned once, are done before numba would be loaded.
    """
    if INTERPRETED or not _MAY_INTERPRET:
        return jit(function)
    return cast(Kernel, _UnlessSmall(function))


class _Interpreted(threading.local):
    seconds = 0.0
    running = False


_interpreted = _Interpreted()


class _UnlessSmall:
    """A function that is compiled at its first call that is worth it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self._function = function
        self._compiled: Any = None

    def __call__(self, *arguments: Any) -> Any:
        if _interpreted.running:  # called by one that is interpreted
            return self._function(*arguments)
        if self._compiled is not None or _interpreted.seconds > _SECONDS or _numbers(arguments) > _NUMBERS:
            return self.compiled(*arguments)
        _interpreted.running = True
        started = time.perf_counter()
        try:
            return _plain(self._function(*arguments))
        finally:
            _interpreted.running = False
            _interpreted.seconds += time.perf_counter() - started

    @property
    def compiled(self) -> Any:
        if self._compiled is None:
            self._compiled = jit(self._function)
        return self._compiled

    @property
    def _numba_type_(self) -> Any:
        """What numba asks for where a kernel that it compiles calls this one."""
        return self.compiled._numba_type_


def _numbers(values: tuple[Any, ...]) -> int:
    return sum(_numbers(value) if isinstance(value, tuple) else getattr(value, "size", 1) for value in values)


def _plain(result: Any) -> Any:
    """Scalars as compiled functions return them."""
    if type(result) is tuple:
        return tuple(_plain(one) for one in result)
    return result.item() if getattr(result, "shape", None) == () else result


def jit_inner(function: Kernel) -> Kernel:
    """As jit(), for a function that makes no array and that only kernels call, once an event.

    References to arrays are not counted in it and it is inlined: with dozens of arrays to count and to hand over, a
    call takes longer than what the function does. It has no entry for the interpreter, which would take as long to
    compile as the function.
    """
    inner: Any = _compile_kernel(
        function, cache=True, nogil=True, _nrt=False, forceinline=True, no_cpython_wrapper=True
    )

    def keep(result: Any) -> None:
        inner.overloads[tuple(result.signature.args)] = result

    def refuse(*_: object) -> None:
        raise TypeError(f"{function.__name__} is called by kernels only: it has no entry for the interpreter")

    if not INTERPRETED:  # numba would jump to an entry that is not there
        inner.add_overload, inner._compile_for_args = keep, refuse
    return cast(Kernel, inner)


@cache
def _tell() -> None:
    sys.stderr.write(
        "machine code is not kept, because no folder for it can be written, or others can write it, too: each command "
        "compiles anew; NUMBA_CACHE_DIR=FOLDER names one of your own\n"
    )


def _compile_kernel(function: Kernel, **options: bool) -> Kernel:
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
    owner = Path(function.__code__.co_filename).stat().st_uid
    if compiled is None or not is_trusted(compiled._cache.cache_path, owner):
        _tell()
        return cast(Kernel, decorate(**{**options, "cache": False})(function))
    # numba itself compiles anew only when the function's own file has changed, but a kernel may call one of another.
    # By the version, which is read first: what is kept of other sources may hold types that are no more.
    kept = compiled._cache._cache_file
    kept._version = f"{kept._version} {_stamp(function.__module__)}"
    return cast(Kernel, compiled)


def tell_of_compiling(tell: Callable[[], None]) -> None:
    """Call a function when a kernel is compiled for the first time, whose machine code is not on disk."""
    if INTERPRETED:
        return
    from numba.core import event  # noqa: PLC0415 - takes 0.2 s

    class Told(event.Listener):
        told = False

        def on_start(self, _: object) -> None:
            if not self.told:
                self.told = True
                tell()

        def on_end(self, _: object) -> None:
            """Nothing: one more may follow."""

    register: Any = event.register  # which has no types
    register("numba:compile", Told())
