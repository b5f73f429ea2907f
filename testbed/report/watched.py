"""What telemetry shows of a load: use of links over time, queues over time, and who sent to whom."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from testbed.model import Floats, Longs, Topology
from testbed.plan import Plan
from testbed.predict.frames import WIRE_OVERHEAD
from testbed.report.figures import scale_for
from testbed.report.heat import HeatMap, draw_heat
from testbed.report.selection import Drawn
from testbed.results.telemetry import Telemetry
from testbed.units import TimeScale, format_quantity

Places = npt.NDArray[np.intp]
MOST_ROWS = 64
MOST_COLUMNS = 120
_MOST_QUEUES = 24
_TICKS = 5
_FULL_SHARES = (0.05, 0.1, 0.2, 0.5)
_WIDEST_MATRIX = 640.0
_SIZES = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))


def telemetry_charts(plan: Plan, telemetry: Telemetry, prefix: str) -> list[Drawn]:
    """Return the drawings of a load; over time its first repeat, the traffic matrix of all."""
    first = np.flatnonzero(telemetry.repeat == 0)
    drawn = []
    if len(first) > 1:
        steps = _Steps(plan, telemetry, first)
        drawn += [*_link_use(plan, telemetry, steps, prefix), *_queues(plan, telemetry, steps, prefix)]
    if len(telemetry.traffic_bytes) and telemetry.traffic_matrix().any():
        drawn.append(_traffic(telemetry, prefix))
    return drawn


class _Steps:
    """Readings of a repeat, taken together where there are more than MOST_COLUMNS.

    Attributes:
        unit: of the time axis.
        edges: (C + 1,) where each column begins and the last ends, real-world time in that unit.
        marks: begin and end of what counts, likewise.
    """

    def __init__(self, plan: Plan, telemetry: Telemetry, rows: Places) -> None:
        real = TimeScale(plan.scenario.lab.chosen_dilation)
        time = np.array([real.to_real(float(at), "s") for at in telemetry.time[rows]])
        window = np.array([real.to_real(float(at), "s") for at in telemetry.window[0]])
        together = -(-(len(rows) - 1) // MOST_COLUMNS)
        self._rows = rows
        self._starts = np.arange(1, len(rows), together)  # the first reading has no increase
        self.unit = scale_for("s", float(time[-1] - time[0]))
        self.edges: Floats = np.append(time[self._starts - 1], time[-1]) / self.unit.factor
        self.marks = [float(at) for at in window / self.unit.factor if self.edges[0] < at < self.edges[-1]]

    def sums(self, figures: Longs) -> Floats:
        """(P, C) increases added up, from (T, P)."""
        found: Floats = np.add.reduceat(figures[self._rows], self._starts, axis=0).T.astype(np.float64)
        return found

    def means(self, figures: Longs) -> Floats:
        """(P, C) gauges averaged, from (T, P)."""
        found: Floats = self.sums(figures) / np.diff(np.append(self._starts, len(self._rows)))
        return found


def _link_use(plan: Plan, telemetry: Telemetry, steps: _Steps, prefix: str) -> list[Drawn]:
    topology = plan.wiring
    trunks = np.flatnonzero(telemetry.port_channel >= 0)
    if not len(trunks):
        return []
    wire = steps.sums(telemetry.sent_bytes + WIRE_OVERHEAD * telemetry.sent_frames)[trunks]
    seconds = np.diff(steps.edges) * steps.unit.factor * plan.scenario.lab.chosen_dilation
    use = 8 * wire / seconds / telemetry.port_rate[trunks, None]
    shown = np.sort(np.argsort(-use.mean(axis=1), kind="stable")[:MOST_ROWS])
    shown = shown[np.argsort(telemetry.port_channel[trunks[shown]], kind="stable")]
    full = next((share for share in _FULL_SHARES if use.max() <= share), 1.0)
    heat = HeatMap(
        use[shown], steps.edges,
        [topology.channel_name(int(telemetry.port_channel[trunks[row]])) for row in shown],
        full, [format_quantity(full * tick / (_TICKS - 1), "ratio") for tick in range(_TICKS)],
        "Link use", f"Time since the start ({steps.unit.name})", marks=steps.marks,
    )  # fmt: skip
    which = f"the {len(shown)} busiest of {len(trunks)}" if len(shown) < len(trunks) else f"all {len(trunks)}"
    return [
        Drawn(
            draw_heat(heat, f"{prefix}-use", f"use of {len(shown)} link directions over time", row_height=9.0),
            f"Use of link directions over time, {which}{_first(telemetry)}. What counts lies between the dashed lines.",
        )
    ]


def _queues(plan: Plan, telemetry: Telemetry, steps: _Steps, prefix: str) -> list[Drawn]:
    waiting = steps.means(telemetry.queue_frames)
    busiest = np.argsort(-waiting.mean(axis=1), kind="stable")[:_MOST_QUEUES]
    busiest = busiest[waiting[busiest].mean(axis=1) >= 1]
    if not len(busiest):
        return []
    limit = float(plan.scenario.links.queue_frames)
    ticks = [f"{limit * tick / (_TICKS - 1):.4g}" for tick in range(_TICKS)]
    heat = HeatMap(
        waiting[busiest], steps.edges, [_port_name(plan.wiring, telemetry, int(port)) for port in busiest],
        limit, ticks, "Frames", f"Time since the start ({steps.unit.name})", marks=steps.marks,
    )  # fmt: skip
    dropped = int(telemetry.queue_drops.sum())
    return [
        Drawn(
            draw_heat(heat, f"{prefix}-queues", f"frames waiting at {len(busiest)} ports over time", row_height=12.0),
            f"Frames that waited at the ports with the fullest queues{_first(telemetry)}; {limit:.0f} find room. "
            f"Full queues of switches lost {dropped:,} frames in the whole load.",
        )
    ]


def _traffic(telemetry: Telemetry, prefix: str) -> Drawn:
    matrix = telemetry.traffic_matrix().astype(float)
    together = -(-len(matrix) // MOST_ROWS)
    starts = np.arange(0, len(matrix), together)
    cells = np.add.reduceat(np.add.reduceat(matrix, starts, axis=0), starts, axis=1)
    names = [str(telemetry.hosts[start]) for start in starts]
    full = float(cells.max())
    unit, factor = _size(full)
    row = min(24.0, max(9.0, 480 / len(cells)))
    heat = HeatMap(
        cells, np.arange(len(cells) + 1, dtype=float), names, full,
        [f"{full * tick / (_TICKS - 1) / factor:.3g} {unit}" for tick in range(_TICKS)],
        "Sent", "to", columns=names, beside="from",
    )  # fmt: skip
    width = min(_WIDEST_MATRIX, 210 + 24 * len(cells)) if len(cells) <= 24 else _WIDEST_MATRIX + 100
    total = float(matrix.sum())
    name, size = _size(total)
    grouped = f" Each row and column stands for {together} hosts." if together > 1 else ""
    return Drawn(
        draw_heat(heat, f"{prefix}-traffic", "bytes from host to host", row_height=row, width=width),
        f"Traffic matrix: bytes that entered the fabric from each host to each other one, headers included, in all "
        f"repeats with their warm-up; {total / size:.4g} {name} in all.{grouped}",
    )


def _size(count: float) -> tuple[str, float]:
    """Unit that suits a number of bytes, and what it is in bytes."""
    return next((pair for pair in _SIZES if count >= pair[1]), _SIZES[-1])


def _first(telemetry: Telemetry) -> str:
    return " in the first repeat" if len(telemetry.window) > 1 else ""


def _port_name(topology: Topology, telemetry: Telemetry, port: int) -> str:
    channel, host = int(telemetry.port_channel[port]), int(telemetry.port_host[port])
    if channel >= 0:
        return topology.channel_name(channel)
    return f"{topology.switch_name(int(topology.host_switch[host]))}→{topology.host_name(host)}"
