"""Results as tables of pandas, which is an extra: whoever imports this has looked whether it is there."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from testbed.base.model import Sample, Topology
from testbed.results.read_run import Run, load_heads
from testbed.results.samples import samples_to_csv
from testbed.results.telemetry import Telemetry, load_telemetry


def samples_frame(samples: Iterable[Sample]) -> pd.DataFrame:
    """A row a sample, with the columns and the types that pandas reads from samples.csv."""
    return pd.read_csv(io.StringIO(samples_to_csv(samples)), keep_default_na=False, na_values=[""])


def telemetry_frame(run: Run) -> pd.DataFrame:
    """A row for each reading of each switch port, of all loads.

    Columns: load, repeat, time (laboratory s since the programs' start), port, channel (None at a host's port), host
    (None between switches), and the counters of Telemetry, increases since the reading before, named as there.
    """
    labels = dict.fromkeys([head.label for head in load_heads(run.manifest, ())])
    parts = []
    for label in labels:
        found = load_telemetry(run.path, label)
        if found is not None:
            parts.append(pd.DataFrame({"load": label, **_columns(run.plan.wiring, found)}))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _columns(wiring: Topology, found: Telemetry) -> dict[str, npt.NDArray[Any]]:
    readings, ports = found.sent_bytes.shape
    channels = [None if one < 0 else wiring.channel_name(one) for one in found.port_channel.tolist()]
    hosts = [None if one < 0 else str(found.hosts[one]) for one in found.port_host.tolist()]
    counters = [field.name for field in fields(Telemetry) if getattr(found, field.name).shape == (readings, ports)]
    return {
        "repeat": np.repeat(found.repeat, ports),
        "time": np.repeat(found.time, ports),
        "port": np.tile(found.ports.astype(object), readings),
        "channel": np.tile(np.array(channels, dtype=object), readings),
        "host": np.tile(np.array(hosts, dtype=object), readings),
        **{name: getattr(found, name).reshape(-1) for name in counters},
    }


def parquet(frame: pd.DataFrame) -> bytes:
    """A table as the content of a Parquet file; it takes pyarrow."""
    content = io.BytesIO()
    frame.to_parquet(content, index=False)
    return content.getvalue()
