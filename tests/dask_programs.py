"""Dask's scheduler and workers as processes of their own, as users start them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from distributed import Client
from distributed.security import Security

ROOT = Path(__file__).parents[1]


@contextmanager
def program(*words: str):
    """A Dask program that ends with the block."""
    started = subprocess.Popen(
        [sys.executable, "-m", *words], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(20)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


@contextmanager
def scheduler(folder: Path, *more: str, host: str = "127.0.0.1"):
    """The address of a scheduler, and its process; `more`: further options."""
    file = folder / "scheduler.json"
    words = (*more, "--host", host, "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
    with program("distributed.cli.dask_scheduler", *words) as started:
        until = time.monotonic() + 60
        while not file.exists() or not file.read_text():
            assert time.monotonic() < until
            time.sleep(0.1)
        yield json.loads(file.read_text())["address"], started


def certificate(folder: Path) -> dict[str, str]:
    """Paths of a certificate that has signed itself, and so is its own authority, and of its key."""
    made = Security.temporary()
    found = {}
    for name, text in (("cert", made.tls_client_cert), ("key", made.tls_client_key)):
        file = folder / f"{name}.pem"
        file.write_text(text)
        file.chmod(0o600)
        found[name] = str(file)
    return found


def tls_options(files: dict[str, str]) -> tuple[str, ...]:
    """Options of `dask scheduler` and `dask worker` that make them use TLS with a certificate."""
    return ("--tls-ca-file", files["cert"], "--tls-cert", files["cert"], "--tls-key", files["key"])


def worker(address: str, *more: str):
    """A worker, and its process; `more`: further options."""
    return program("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny", *more)


def await_workers(address: str, count: int) -> bool:
    """Return when so many workers are there."""
    with Client(address, timeout=30) as client:
        client.wait_for_workers(count, timeout=60)
    return True
