"""Pictures of the fabric: use of each direction of each link, the tree of each VLAN, a deadlock as it forms."""

from __future__ import annotations

import io
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from testbed.base.model import Floats, Sample, Topology, VlanPlan
from testbed.base.units import count_noun, format_quantity
from testbed.experiments.report.charts import predicted_median
from testbed.experiments.report.fabric_drawing import ReportFabric, Stroke, channel_strokes
from testbed.experiments.report.geometry import Layout, layout
from testbed.experiments.report.marks import full_share
from testbed.experiments.report.palette import COLOURS, INK, LINK, MUTED, TREES
from testbed.experiments.report.panels import PAGE_WIDTH, Axis, Block, Panel, Picture
from testbed.experiments.report.render import for_page, write

MAX_SWITCHES = 400
MAX_PANELS = 12
CYCLE = COLOURS["bad"][0]
_BESIDE = 110.0  # pixels, of the scale of colours
_TALLEST = 860.0
_BIGGEST_UNIT = 150.0
_GAP = 30.0
_MIN_PANEL, _MIN_PANEL_UNIT = 230.0, 37.0
_UNUSED = 0.0005  # a smaller use is shown as none
_LAST_SECONDS = 4


@dataclass(frozen=True, slots=True)
class LinkUse:
    """Use of a channel as a share of its rate: measured, and predicted if anything was."""

    measured: float
    predicted: float | None


def link_use(topology: Topology, samples: Iterable[Sample]) -> dict[int, LinkUse]:
    """Median use of each channel that has samples; names that are no channel's are left out."""
    numbers = {topology.channel_name(channel): channel for channel in range(2 * topology.link_count)}
    found: dict[int, list[Sample]] = {}
    for sample in samples:
        channel = numbers.get(sample.labels.get("channel", ""))
        if sample.metric == "link_use" and channel is not None and math.isfinite(sample.value):
            found.setdefault(channel, []).append(sample)
    return {
        channel: LinkUse(statistics.median(s.value for s in group), predicted_median(group))
        for channel, group in sorted(found.items())
    }


def fabric_panel(
    fabric: ReportFabric, title: str = "", aside: str = "", colour: str = INK, least: float = 0.0
) -> Panel:
    """A panel for a fabric, a unit of its axes a pixel; not narrower than `least`."""
    place = layout(fabric.topology)
    width, height = place.width * fabric.unit, place.height * fabric.unit
    spare = max(least - width, 0.0) / 2
    axes = Axis(low=-spare, high=width + spare, ticks=()), Axis(low=0, high=height, ticks=())
    return Panel([fabric], *axes, title, aside, colour, width + 2 * spare, height)


def draw_topology(topology: Topology, prefix: str, use: Mapping[int, LinkUse] | None = None) -> str:
    """Return the topology as SVG, each link one line, or with `use` each direction coloured by its use.

    Links have the ids `PREFIX-link-N`, directions `PREFIX-channel-N`.
    """
    place = layout(topology)
    unit = min(_BIGGEST_UNIT, (PAGE_WIDTH - 2 * _BESIDE * bool(use)) / place.width, _TALLEST / place.height)
    everyone = np.ones(topology.host_count, dtype=bool)
    hosts = [(everyone, MUTED, min(max(0.09 * unit, 3.0), 9.5))]
    titles, scale = {}, []
    if use:
        full = full_share(max(value.measured for value in use.values()))
        shares = {channel: value.measured / full for channel, value in use.items() if value.measured >= _UNUSED}
        strokes = channel_strokes(topology, unit, shares)
        scale = [format_quantity(full * tick / 4, "ratio") for tick in range(5)]
        for channel in range(2 * topology.link_count):
            titles[f"channel-{channel}"] = f"{topology.channel_name(channel)}: {_use_words(use.get(channel))}"
    else:
        strokes = [Stroke([link], gid=f"link-{link}") for link in range(topology.link_count)]
        for link in range(topology.link_count):
            titles[f"link-{link}"] = topology.channel_name(2 * link).replace("→", "–")
    fabric = ReportFabric(
        topology, unit, strokes, hosts, everyone, 13.0, "switches", scale=scale, scale_title="Link utilisation"
    )
    about = f"{topology.kind} of {topology.switch_count} switches"
    return for_page(Picture([Block([fabric_panel(fabric)])], width=PAGE_WIDTH + 40), prefix, about, titles)


def _use_words(use: LinkUse | None) -> str:
    if use is None:
        return "not measured"
    if use.measured < _UNUSED:
        return "unused"
    predicted = "" if use.predicted is None else f", predicted {format_quantity(use.predicted, 'ratio')}"
    return f"{format_quantity(use.measured, 'ratio')}{predicted}"


def draw_vlans(topology: Topology, vlans: VlanPlan, prefix: str) -> str:
    """Return one panel a VLAN as SVG, at most MAX_PANELS: its links and the hosts that send in it coloured."""
    place = layout(topology)
    count = min(vlans.vlan_count, MAX_PANELS)
    columns = _columns(place, count)
    unit = min(_BIGGEST_UNIT * 0.6, (PAGE_WIDTH / columns - _GAP) / place.width)
    panels = []
    for vlan in range(count):
        colour, members, own = TREES[vlan % len(TREES)], vlans.tagged_links[vlan], vlans.sending_hosts(vlan)
        strokes = [
            Stroke(np.flatnonzero(~members).tolist(), width=0.8, gid=f"vlan-{vlan}-rest"),
            Stroke(np.flatnonzero(members).tolist(), colour, 3.0, gid=f"vlan-{vlan}-tree"),
        ]
        hosts = [(~own, LINK, min(max(0.06 * unit, 2.5), 6.0)), (own, colour, min(max(0.12 * unit, 6.0), 10.0))]
        fabric = ReportFabric(topology, unit, strokes, hosts, own, 9.5, f"vlan-{vlan}-switches")
        aside = f"{count_noun(int(own.sum()), 'host')}, {count_noun(int(members.sum()), 'link')}"
        panels.append(fabric_panel(fabric, f"VLAN {vlans.vlan_ids[vlan]}", aside, least=_MIN_PANEL))
    picture = Picture([Block(panels, columns)], width=PAGE_WIDTH + 40)
    return for_page(picture, prefix, f"the trees of {count_noun(count, 'VLAN')}")


def _columns(place: Layout, count: int) -> int:
    """As many panels beside each other as stay legible."""
    columns = next((n for n in (4, 3) if (PAGE_WIDTH / n - _GAP) / place.width >= _MIN_PANEL_UNIT), 2)
    return min(2 if count == 4 and columns == 3 else columns, count)  # two rows of two


# Title, (C,) share of each memory that is full, and the channels of the cycle.
Occupancy = tuple[str, Floats, Sequence[int]]


def draw_occupancy(topology: Topology, moments: Sequence[Occupancy]) -> bytes:
    """Draw moments side by side as SVG, buffers coloured by how full they are, a deadlock's cycle in red."""
    columns = min(len(moments), 4)
    unit = min(130.0, (PAGE_WIDTH / columns - _GAP) / layout(topology).width)
    panels = [_occupancy(topology, unit, moment) for moment in moments]
    return write(Picture([Block(panels, columns)], width=PAGE_WIDTH + 40), "svg")


def animate_occupancy(topology: Topology, moments: Sequence[Occupancy]) -> bytes:
    """Show moments one after the other, a second each, as an animated GIF; the last one stays longer."""
    unit = min(130.0, PAGE_WIDTH / 2 / layout(topology).width)
    pictures = [write(Picture([Block([_occupancy(topology, unit, moment)])]), "png") for moment in moments]
    frames = [Image.open(io.BytesIO(picture)).convert("RGB") for picture in pictures]
    content = io.BytesIO()
    seconds = [*[1] * (len(moments) - 1), _LAST_SECONDS]
    frames[0].save(
        content, "GIF", save_all=True, append_images=frames[1:], duration=[1000 * second for second in seconds], loop=0
    )
    return content.getvalue()


def _occupancy(topology: Topology, unit: float, moment: Occupancy) -> Panel:
    title, fill, cycle = moment
    strokes = channel_strokes(topology, unit, dict(enumerate(fill.tolist())), cycle, CYCLE)
    hosts = [(np.ones(topology.host_count, dtype=bool), MUTED, min(max(0.07 * unit, 2.0), 6.0))]
    about = f"{title}: deadlock" if cycle else title
    return fabric_panel(ReportFabric(topology, unit, strokes, hosts), about, colour=CYCLE if cycle else MUTED)
