"""The options of commands that give their runs to workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from testbed.base.errors import InputError

if TYPE_CHECKING:
    from testbed.engines.local_machine.cluster import Cluster

CLUSTER_HELP = "run on workers: local, local:N, slurm:N, or a Dask scheduler's tcp:// or tls:// address"
INSECURE_HELP = "allow an unencrypted scheduler that other machines can reach"
CLUSTER = Annotated[str | None, typer.Option("--cluster", help=CLUSTER_HELP)]
INSECURE = Annotated[bool, typer.Option("--insecure", help=INSECURE_HELP)]


@contextmanager
def cluster_of(cluster: str | None, progress: Callable[[str], None], *, insecure: bool) -> Iterator[Cluster | None]:
    """The workers that the options name; None where they name none.

    Raises:
        InputError: `insecure` without a cluster; see open_cluster().
    """
    if cluster is None:
        if insecure:
            raise InputError.one("--insecure", "is for --cluster; name a scheduler, or leave it out")
        yield None
        return
    from testbed.engines.local_machine.cluster import open_cluster

    with open_cluster(cluster, progress, insecure=insecure) as workers:
        yield workers
