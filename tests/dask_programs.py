"""Dask's scheduler and workers as processes of their own, as users start them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from distributed import Client

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
def scheduler(folder: Path, host: str = "127.0.0.1"):
    """The address of a scheduler, and its process."""
    file = folder / "scheduler.json"
    words = ("--host", host, "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
    with program("distributed.cli.dask_scheduler", *words) as started:
        until = time.monotonic() + 60
        while not file.exists() or not file.read_text():
            assert time.monotonic() < until
            time.sleep(0.1)
        yield json.loads(file.read_text())["address"], started


def worker(address: str, *more: str):
    """A worker, and its process; `more`: further options."""
    return program("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny", *more)


def await_workers(address: str, count: int) -> bool:
    """Return when so many workers are there."""
    with Client(address, timeout=30) as client:
        client.wait_for_workers(count, timeout=60)
    return True
