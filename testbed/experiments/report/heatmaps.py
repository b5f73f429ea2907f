"""Heat maps: link use and queues over time, who sent to whom, and how full a simulated fabric's channels were."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from testbed.base.ethernet import VLAN_TAG, wire_bits
from testbed.base.model import Floats, Longs, Topology
from testbed.base.units import TimeScale, format_quantity, format_seconds, scale_for
from testbed.experiments.report.charts import Chart
from testbed.experiments.report.figure_tables import matrix as matrix_sheet
from testbed.experiments.report.figure_tables import over_time
from testbed.experiments.report.marks import Heat, Mark, full_share
from testbed.experiments.report.palette import INK
from testbed.experiments.report.panels import Axis, Block, Panel, Picture, rows_of_names
from testbed.experiments.report.render import for_page, write
from testbed.planning import Plan
from testbed.results.samples import Moment
from testbed.results.telemetry import Telemetry

Places = npt.NDArray[np.intp]
MAX_ROWS = 64
MAX_COLUMNS = 120
_MAX_QUEUES = 24
_TICKS = 5
_SIZES = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))
_ROW, _WIDTH = 11.0, 850.0  # pixels


def heat_panel(
    heat: Heat,
    rows: Sequence[str],
    x: Axis,
    *,
    label: str = "",
    width: float = _WIDTH,
    row: float = _ROW,
    marks: Sequence[float] = (),
    moments: Sequence[float] = (),
) -> Panel:
    """A heat map with names of its rows.

    In pixels: `width` of all columns, `row` of a row. Places in `marks` get a dashed line, in `moments` a solid one.
    """
    lines = [Mark(mark, colour=INK) for mark in marks] + [Mark(mark, colour=INK, dash="-") for mark in moments]
    return Panel([heat, *lines], x, Axis(label, ticks=rows_of_names(rows)), width=width, height=row * len(rows))


def _matrix(values: Floats, names: Sequence[str], full: float, scale: Sequence[str], title: str) -> Panel:
    """From host (row) to host (column)."""
    count = len(values)
    cell = min(24.0, max(9.0, 480 / count))
    heat = Heat(values, np.arange(count + 1, dtype=float), full, scale, title)
    return heat_panel(heat, names, Axis("to", ticks=rows_of_names(names)), label="from", width=cell * count, row=cell)


def _shares(full: float) -> list[str]:
    return [format_quantity(full * tick / (_TICKS - 1), "ratio") for tick in range(_TICKS)]


def telemetry_charts(plan: Plan, telemetry: Telemetry, prefix: str, changes: Sequence[Moment] = ()) -> list[Chart]:
    """Return the drawings of a load; over time its first repeat, the traffic matrix of all.

    Args:
        plan: at the dilation that was measured.
        telemetry: of the load.
        prefix: of names in the drawings.
        changes: what changed in the first repeat.
    """
    first = np.flatnonzero(telemetry.repeat == 0)
    charts = []
    if len(first) > 1:
        steps = _Steps(plan, telemetry, first, changes)
        charts += [*_link_use(plan, telemetry, steps, prefix), *_queues(plan, telemetry, steps, prefix)]
    if len(telemetry.traffic_bytes) and telemetry.traffic_matrix().any():
        charts.append(_traffic(telemetry, prefix))
    return charts


class _Steps:
    """Readings of a repeat, taken together where there are more than MAX_COLUMNS.

    Attributes:
        edges: (C + 1,) where each column begins and the last ends, real-world time in the axis' unit.
        seconds: what that unit is.
        x: the axis.
        marks: begin and end of what counts, likewise.
        moments: when links changed, likewise.
        words: what these lines are.
    """

    def __init__(self, plan: Plan, telemetry: Telemetry, rows: Places, changes: Sequence[Moment] = ()) -> None:
        real = TimeScale(plan.scenario.lab.chosen_dilation)
        time = np.array([real.to_real(float(at), "s") for at in telemetry.time[rows]])
        window = np.array([real.to_real(float(at), "s") for at in telemetry.window[0]])
        together = -(-(len(rows) - 1) // MAX_COLUMNS)
        self._rows = rows
        self._starts = np.arange(1, len(rows), together)  # the first reading has no increase
        unit = scale_for("s", float(time[-1] - time[0]))
        self.seconds = unit.factor
        self.x = Axis(f"Time since the start ({unit.name})")
        self.edges: Floats = np.append(time[self._starts - 1], time[-1]) / unit.factor
        self.marks = [float(at) for at in window / unit.factor if self.edges[0] < at < self.edges[-1]]
        self.moments = [real.to_real(change["at"], "s") / unit.factor for change in changes]
        said = [
            f"{moment:.3g} {unit.name}: {change['event'].partition(': ')[2]}"
            for moment, change in zip(self.moments, changes, strict=True)
        ]
        self.words = f" Solid lines: {'; '.join(said)}." if said else ""

    def sums(self, figures: Longs) -> Floats:
        """(P, C) increases added up, from (T, P)."""
        found: Floats = np.add.reduceat(figures[self._rows], self._starts, axis=0).T.astype(np.float64)
        return found

    def means(self, figures: Longs) -> Floats:
        """(P, C) gauges averaged, from (T, P)."""
        found: Floats = self.sums(figures) / np.diff(np.append(self._starts, len(self._rows)))
        return found


def _link_use(plan: Plan, telemetry: Telemetry, steps: _Steps, prefix: str) -> list[Chart]:
    topology = plan.wiring
    trunks = np.flatnonzero(telemetry.port_channel >= 0)
    if not len(trunks):
        return []
    tag = VLAN_TAG if plan.vlans.tagged_trunks else 0
    bits = wire_bits(steps.sums(telemetry.sent_bytes), steps.sums(telemetry.sent_frames), tag)[trunks]
    seconds = np.diff(steps.edges) * steps.seconds * plan.scenario.lab.chosen_dilation
    use = bits / seconds / telemetry.port_rate[trunks, None]
    shown = np.sort(np.argsort(-use.mean(axis=1), kind="stable")[:MAX_ROWS])
    shown = shown[np.argsort(telemetry.port_channel[trunks[shown]], kind="stable")]
    full = full_share(use.max())
    names = [topology.channel_name(int(telemetry.port_channel[trunks[row]])) for row in shown]
    panel = heat_panel(
        Heat(use[shown], steps.edges, full, _shares(full), "Link utilisation"), names, steps.x, marks=steps.marks,
        moments=steps.moments,
    )  # fmt: skip
    which = f"the {len(shown)} busiest of {len(trunks)}" if len(shown) < len(trunks) else f"all {len(trunks)}"
    return [
        Chart(
            _on_page(panel, f"{prefix}-use", f"utilisation of {len(shown)} link directions over time"),
            f"Utilisation of link directions over time, {which}{_repeat_note(telemetry)}. What counts lies between the "
            f"dashed lines.{steps.words}",
            (over_time("Utilisation over time", "direction", names, use[shown], _percent),),
        )
    ]


def _queues(plan: Plan, telemetry: Telemetry, steps: _Steps, prefix: str) -> list[Chart]:
    waiting = steps.means(telemetry.queue_frames)
    busiest = np.argsort(-waiting.mean(axis=1), kind="stable")[:_MAX_QUEUES]
    busiest = busiest[waiting[busiest].mean(axis=1) >= 1]
    if not len(busiest):
        return []
    limit = float(plan.scenario.links.queue_frames)
    ticks = [f"{limit * tick / (_TICKS - 1):.4g}" for tick in range(_TICKS)]
    names = [_port_name(plan.wiring, telemetry, int(port)) for port in busiest]
    panel = heat_panel(
        Heat(waiting[busiest], steps.edges, limit, ticks, "Frames"), names, steps.x,
        row=max(12.0, 120 / len(names)), marks=steps.marks, moments=steps.moments,
    )  # fmt: skip
    drops = int(telemetry.queue_drops.sum())
    return [
        Chart(
            _on_page(panel, f"{prefix}-queues", f"frames waiting at {len(busiest)} ports over time"),
            f"Frames that waited at the ports with the longest queues{_repeat_note(telemetry)}; {limit:.0f} find room. "
            f"Tail drops of switches in the whole load: {drops:,} frames.",
            (over_time("Frames that waited", "port", names, waiting[busiest], lambda value: f"{value:.3g}"),),
        )
    ]


def _traffic(telemetry: Telemetry, prefix: str) -> Chart:
    matrix = telemetry.traffic_matrix().astype(float)
    cells, names, together = _group_rows(matrix, [str(host) for host in telemetry.hosts], np.add)
    full, total = float(cells.max()), float(matrix.sum())
    unit, factor = _size(full)
    scale = [f"{full * tick / (_TICKS - 1) / factor:.3g} {unit}" for tick in range(_TICKS)]
    name, size = _size(total)
    grouped = f" Each row and column represents {together} hosts." if together > 1 else ""
    return Chart(
        _on_page(_matrix(cells, names, full, scale, "Sent"), f"{prefix}-traffic", "bytes from host to host"),
        f"Traffic matrix: bytes that entered the fabric from each host to each other one, headers included, in all "
        f"repeats with their warm-up; {total / size:.4g} {name} in all.{grouped}",
        (matrix_sheet("Bytes from host to host", names, cells, _bytes),),
    )


def _group_rows(matrix: Floats, names: Sequence[str], combine: np.ufunc) -> tuple[Floats, list[str], int]:
    """A matrix of at most MAX_ROWS rows, their names, and how many hosts are one row."""
    together = -(-len(matrix) // MAX_ROWS)
    starts = np.arange(0, len(matrix), together)
    cells = combine.reduceat(combine.reduceat(matrix, starts, axis=0), starts, axis=1)
    return cells, [names[start] for start in starts.tolist()], together


def _size(count: float) -> tuple[str, float]:
    """Unit that suits a number of bytes, and what it is in bytes."""
    return next((pair for pair in _SIZES if count >= pair[1]), _SIZES[-1])


def _bytes(count: float) -> str:
    unit, size = _size(count)
    return f"{count / size:.3g} {unit}"


def _percent(share: float) -> str:
    return format_quantity(share, "ratio")


def _repeat_note(telemetry: Telemetry) -> str:
    return " in the first repeat" if len(telemetry.window) > 1 else ""


def _port_name(topology: Topology, telemetry: Telemetry, port: int) -> str:
    channel, host = int(telemetry.port_channel[port]), int(telemetry.port_host[port])
    if channel >= 0:
        return topology.channel_name(channel)
    return f"{topology.switch_name(int(topology.host_switch[host]))}→{topology.host_name(host)}"


def _on_page(panel: Panel, prefix: str, label: str) -> str:
    return for_page(Picture([Block([panel])]), prefix, label)


def draw_channel_use(topology: Topology, use: Floats, edges: Floats, below: str, columns: Sequence[str] = ()) -> bytes:
    """Draw the use of the busiest channels between switches over loads, or over time.

    `use`: (C, L) share of the time in which each channel carried something; `edges`: (L + 1,) where each column begins,
    and where the last one ends.
    """
    busiest = np.sort(np.argsort(-use.max(axis=1), kind="stable")[:MAX_ROWS])
    full = full_share(use[busiest].max())
    x = Axis(below, ticks=rows_of_names(columns) if columns else None)
    panel = heat_panel(
        Heat(use[busiest], edges, full, _shares(full), "Channel utilisation"),
        [topology.channel_name(int(channel)) for channel in busiest],
        x,
        width=min(550.0, 46.0 * max(len(columns), 3)) if columns else 550.0,
    )
    return write(Picture([Block([panel])]), "svg")


def draw_pair_times(topology: Topology, times: Floats) -> bytes:
    """Draw when all that a host has sent to another one had arrived.

    `times`: (H, H) s from host (row) to host (column), 0 for pairs that send nothing.
    """
    cells, names, _ = _group_rows(times, [topology.host_name(host) for host in range(len(times))], np.maximum)
    full = float(cells.max())
    scale = [format_seconds(full * tick / (_TICKS - 1)) for tick in range(_TICKS)]
    return write(Picture([Block([_matrix(cells, names, full, scale, "Arrived")])]), "svg")
