from __future__ import annotations

import math
import random
import re

import matplotlib as mpl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from testbed.base.errors import InputError
from testbed.base.model import Sample
from testbed.experiments.compare import compare
from testbed.experiments.compare.figure import FORMATS, MAX_PANELS, draw, picture_of
from testbed.experiments.report.panels import compose, pixels, wrap_text
from testbed.experiments.report.render import drawing_style
from tests.runs import UDP, goodput, head, run_of, text_of

MPI = "{kind: mpi, job: fabric_bench}"
KINDS = {
    "flat16": "{kind: flat, hosts: 16}",
    "mesh4x4": "{kind: mesh, sizes: [4, 4]}",
    "torus4x4": "{kind: torus, sizes: [4, 4]}",
    "mtree4x4": "{kind: m_tree, columns: 4, rows: 4}",
}
SIGNATURES = {"svg": b"<?xml", "pdf": b"%PDF-", "png": b"\x89PNG\r\n"}


def by_kind(dilation=200.0, verdicts=(), sizes=(20000,), most=4):
    """One load of each kind on each fabric, with a verdict for UDP on the first fabrics."""
    generator = random.Random(3)
    runs = []
    for (name, kind), verdict in zip(list(KINDS.items())[:most], [*verdicts, *["pass"] * 4], strict=False):
        samples = [] if verdict == "fail" else goodput(9e8 * generator.random(), 8e8 * generator.random())
        samples += [
            Sample("mpi_alltoall_time", generator.uniform(1, 9) * 1e-3, "s", {"load": "2", "bytes": str(size)}, 1e-3)
            for size in sizes
        ]
        loads = [head(1, "iperf3 udp transpose", verdict, "busy"), head(2, "mpi fabric_bench")]
        runs.append(run_of(text_of(kind, UDP, MPI, dilation=dilation), samples, loads, name=name))
    return runs


def pairs():
    return [
        run_of(
            text_of(f"{{kind: mesh, sizes: [2], hosts_per_switch: {count}}}", "{kind: iperf3, protocol: udp}"),
            goodput(9e8 / count, predicted=9.5e8 / count),
            [head(1, "iperf3 udp neighbour", {4: "invalid", 8: "warn"}.get(count, "pass"))], name="pairs",
        )
        for count in (1, 2, 4, 8)
    ]  # fmt: skip


def composed(comparison, title="", x_label=""):
    with drawing_style():
        return compose(picture_of(comparison, title, x_label))


def words(figure):
    return [text.get_text() for text in figure.findobj(Text) if text.get_text() and text.get_visible()]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_every_form_is_what_its_name_says_and_the_same_twice(form):
    found = compare(by_kind(verdicts=["pass", "invalid", "fail", "warn"]), metrics=["goodput"])
    content = draw(found, form, title="A title")
    assert content.startswith(SIGNATURES[form])
    assert content == draw(found, form, title="A title")


def test_a_pdf_brings_its_fonts_and_an_svg_needs_none():
    found = compare(by_kind(most=2), metrics=["goodput"])
    pdf = draw(found, "pdf")
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    svg = draw(found, "svg").decode()
    assert "<text" not in svg
    assert "font-family" not in svg


def test_users_settings_change_nothing():
    found = compare(by_kind(most=2), metrics=["goodput"])
    before = draw(found, "png")
    with mpl.rc_context({"axes.facecolor": "red", "font.size": 30, "pdf.fonttype": 3, "hatch.linewidth": 9}):
        assert draw(found, "png") == before


def test_bars_are_marked_by_their_verdicts():
    figure = composed(compare(by_kind(verdicts=["pass", "invalid", "fail", "warn"]), metrics=["goodput"]))
    (axes,) = figure.axes
    assert [bool(bar.get_hatch()) for bar in axes.patches] == [False, True, False]  # what failed has no bar
    beside = [text.get_text() for text in axes.texts]
    assert beside[:3] == ["×1.00", "invalid", "failed"]
    assert re.fullmatch(r"×\d\.\d+", beside[3])
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    assert [list(line.get_ydata()) for line in hollow] == [[3]]
    said = words(figure)
    for text in ("measured, median", "predicted", "95 % interval", "with warnings", "invalid, do not use"):
        assert text in said
    assert "Goodput (Mbit/s)" in said


def test_what_is_not_there_is_not_explained():
    said = words(composed(compare(by_kind(), metrics=["mpi_alltoall_time"])))
    assert "lower bound" in said
    assert not {"predicted", "95 % interval", "with warnings", "invalid, do not use"} & {*said}


def test_lengths_of_bars_are_the_medians():
    found = compare(by_kind(), metrics=["goodput"])
    (axes,) = composed(found).axes
    lengths = [bar.get_width() for bar in axes.patches]
    assert lengths == pytest.approx([row.spread.median / 1e6 for row in found.rows if row.spread])
    assert axes.get_xlim()[0] == 0


def test_a_dollar_in_a_text_begins_no_formula():
    runs = by_kind(most=2)
    found = compare(runs, metrics=["goodput"])
    for form in FORMATS:
        assert draw(found, form, title=r"$\frac$ and $x$", x_label=r"$\frac$").startswith(SIGNATURES[form])
    assert r"$\frac$ and $x$" in words(composed(found, r"$\frac$ and $x$"))


def test_dilations_that_differ_are_told_beside_the_names():
    def named(*dilations):
        runs = [by_kind(dilation)[number] for number, dilation in enumerate(dilations)]
        figure = composed(compare(runs, metrics=["goodput"]))
        return [label.get_text().replace("\n", " ") for label in figure.axes[0].get_yticklabels()]

    assert named(200, 200) == ["flat16", "mesh4x4"]
    assert named(100, 400) == ["flat16 (dilation 100)", "mesh4x4 (dilation 400)"]


def test_lines_leave_out_invalid_points_and_mark_them():
    found = compare(pairs(), swept="topology.hosts_per_switch")
    figure = composed(found, x_label="Pairs of hosts")
    (axes,) = figure.axes
    measured = next(line for line in axes.lines if line.get_marker() == "o")
    assert list(measured.get_xdata()) == [1, 2, 4, 8]
    assert list(measured.get_ydata()) == pytest.approx([900, 450, math.nan, 112.5], nan_ok=True)
    crosses = [line for line in axes.lines if line.get_marker() == "x"]
    assert [list(line.get_xdata()) for line in crosses] == [[4]]
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    assert [list(line.get_xdata()) for line in hollow] == [[8]]
    predicted = next(line for line in axes.lines if line.get_linestyle() == "--")
    assert list(predicted.get_ydata()) == pytest.approx([950, 475, 237.5, 118.75])
    assert axes.get_xlabel() == "Pairs of hosts"
    assert {"measured", "predicted", "with warnings", "invalid, do not use"} <= {*words(figure)}


def test_many_message_sizes_become_a_line_over_them():
    few = composed(compare(by_kind(sizes=(1, 1024)), metrics=["mpi_alltoall_time"]))
    assert len(few.axes) == 2
    many = composed(compare(by_kind(sizes=(1, 64, 1024, 4096, 65536)), metrics=["mpi_alltoall_time"]))
    (axes,) = many.axes
    assert axes.get_xlabel() == "Message size"
    assert {*KINDS} <= {*words(many)}


LONG = "a-scenario-with-a-name-that-is-rather-long-for-a-figure"


@pytest.mark.slow
@pytest.mark.parametrize(
    "comparison",
    [
        compare(by_kind(verdicts=["pass", "invalid", "fail", "warn"])),
        compare(by_kind(most=2)),
        compare(by_kind(sizes=(1, 2, 3, 4))),
        compare(by_kind(sizes=(1, 64, 1024, 4096, 65536))),
        compare([*by_kind(100), *by_kind(200), *by_kind(400)]),
        compare(pairs(), swept="topology.hosts_per_switch"),
        compare([*pairs(), run_of(text_of(KINDS["flat16"], "{kind: iperf3, protocol: udp}"), goodput(9e8), name=LONG)],
                metrics=["goodput"], baseline=LONG),
    ],
    ids=["verdicts", "two", "five panels", "bars and lines", "three dilations", "lines", "long names"],
)  # fmt: skip
def test_all_text_is_inside_the_figure_and_no_two_panels_overlap(comparison):
    figure = composed(comparison, title="A title over all of it", x_label="Pairs of hosts over one link")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = [axes.get_tightbbox(canvas.get_renderer()) for axes in figure.axes]
    boxes += [legend.get_window_extent(canvas.get_renderer()) for legend in figure.legends]
    boxes += [text.get_window_extent(canvas.get_renderer()) for text in figure.texts]
    for box in boxes:
        assert box.x0 >= -0.5
        assert box.y0 >= -0.5
        assert box.x1 <= figure.bbox.x1 + 0.5
        assert box.y1 <= figure.bbox.y1 + 0.5
    for number, one in enumerate(boxes):
        for other in boxes[number + 1 :]:
            apart = one.x1 <= other.x0 or other.x1 <= one.x0 or one.y1 <= other.y0 or other.y1 <= one.y0
            assert apart, (one, other)


def test_more_panels_or_lines_than_can_be_read_are_refused():
    loads = [f"{{kind: ping, pattern: complement, size: {100 + number}}}" for number in range(MAX_PANELS + 1)]
    samples = [Sample("rtt_mean", 1e-5, "s", {"load": str(number + 1)}) for number in range(len(loads))]
    heads = [head(number + 1, "ping complement") for number in range(len(loads))]
    runs = [run_of(text_of(kind, *loads), samples, heads, name=name) for name, kind in list(KINDS.items())[:2]]
    with pytest.raises(InputError, match="the figure: would have 25 panels, and 24 fit; choose some metrics"):
        draw(compare(runs), "svg")
    sizes = tuple(2**power for power in range(6))
    many = [run for dilation in (100, 200, 300, 400) for run in by_kind(dilation, sizes=sizes)]
    with pytest.raises(InputError, match="would have 16 lines, and 12 can be told apart; compare fewer scenarios"):
        draw(compare(many, metrics=["mpi_alltoall_time"]), "svg")


def test_text_is_broken_where_it_gets_too_wide():
    assert wrap_text("MPI all-to-all time (ms)", 1000) == "MPI all-to-all time (ms)"
    broken = wrap_text("MPI all-to-all time (ms)", 90)
    assert broken.replace("\n", " ") == "MPI all-to-all time (ms)"
    assert all(pixels(line) <= 90 for line in broken.split("\n"))
    assert wrap_text("oneverylongword", 10) == "oneverylongword"
    assert pixels(" ") == 0
