import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import matplotlib as mpl
import pytest

from testbed.base.model import Sample
from testbed.experiments.report import render_report
from testbed.experiments.report.figure_tables import MOST, sheet
from testbed.experiments.report.palette import COLOURS
from testbed.planning import make_plan
from testbed.results import Run
from testbed.scenario import parse_scenario

ROOT = Path(__file__).resolve().parents[3]
VOID = {"meta", "link", "br", "hr", "img", "input", "path", "rect", "use", "circle"}
TORUS = "topology: {kind: torus, sizes: [4, 4]}"
PAIR = "topology: {kind: mesh, sizes: [2, 1]}"  # where any fabric would do: the smallest one that is drawn
RESOURCES = ("src", "srcset", "data", "action", "poster", "background", "xlink:href", "xmlns")


class Page(HTMLParser):
    """Reads a page; every element must be closed by its own end tag."""

    def __init__(self, text):
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.sections: list[str] = []
        self.text: list[str] = []
        self.cells: list[list[str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.elements.append((tag, values))
        if "id" in values:
            self.ids.append(values["id"])
        if tag == "section":
            self.sections.append(values["id"])
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if self.open and {"td", "th"} & set(self.open):
            self.cells[-1][-1] += data

    def row(self, name):
        return next(cells for cells in self.cells if cells and cells[0] == name)


def make_run(tmp_path, text=PAIR, samples=(), **manifest):
    plan = make_plan(parse_scenario(text, "made-up.yaml"))
    said = plan.scenario.lab.dilation
    dilation = 200.0 if said == "auto" else said
    entry = {"schema_version": 1, "verdict": "pass", "reasons": [], "loads": [], "dilation": dilation, **manifest}
    environment = {"kernel": "Linux 6.1", "cpu": {"model": "Example", "cores": 2}, "missing": ["a module"]}
    return Run(tmp_path, entry, environment, plan, tuple(samples))


def flow_samples(count=4, repeats=2, load="1"):
    """Goodput of count flows; flow i and repeat r measure (900 + 10 i + r) Mbit/s of 950."""
    return [
        Sample(
            "goodput",
            (900 + 10 * flow + repeat) * 1e6,
            "bit/s",
            {"load": load, "repeat": str(repeat), "src": f"h{flow + 1}", "dst": f"h{flow + 2}"},
            950e6,
        )
        for flow in range(count)
        for repeat in range(repeats)
    ]


def use_samples(topology, load="1"):
    return [
        Sample(
            "link_use",
            channel / 100,
            "ratio",
            {"load": load, "channel": topology.channel_name(channel)},
            channel / 90,
        )
        for channel in range(2 * topology.link_count)
    ]


LOAD = {"load": "1", "title": "iperf3 udp neighbour", "kind": "iperf3", "verdict": "pass", "reasons": []}


@pytest.fixture(scope="module")
def full_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("full")
    run = make_run(folder, TORUS, loads=[LOAD])
    (folder / "raw" / "1").mkdir(parents=True)
    for name in ("h2.txt", "h10.txt", "a & b #1.txt"):
        (folder / "raw" / "1" / name).write_text("x")
    return Run(
        run.path, run.manifest, run.environment, run.plan,
        (*flow_samples(), *use_samples(run.plan.topology)),
    )  # fmt: skip


@pytest.fixture(scope="module")
def text(full_run):
    """Its page, rendered once for all tests that read it."""
    return render_report(full_run)


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


@pytest.mark.slow
def test_page_is_well_formed_and_its_ids_are_unique(page):
    assert len(page.ids) == len(set(page.ids)) > 100


def test_page_needs_nothing_beside_itself(text, page):
    assert not re.search(r"https?://", text)
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert not {tag for tag, _ in page.elements} & {"script", "link", "img", "iframe", "object", "image"}
    for _, attributes in page.elements:
        for name in RESOURCES:
            assert (attributes.get(name) or "#").startswith("#")


def test_every_reference_inside_the_page_has_its_target(text, page):
    targets = re.findall(r'(?:xlink:href="#|url\(#)([^")]+)', text)
    assert targets
    assert set(targets) <= set(page.ids)


def test_sections_are_in_their_order(page):
    assert page.sections == [
        "what", "results", "charts", "fabric", "vlans", "environment", "files", "reading",
    ]  # fmt: skip


def test_run_without_samples_has_no_results_and_no_chart(tmp_path):
    text = render_report(make_run(tmp_path))
    page = Page(text)
    assert page.sections == ["what", "fabric", "vlans", "environment", "files", "reading"]
    assert "Link utilisation" not in text
    assert 'id="topology-link-0"' in text


def test_load_without_samples_is_listed_with_its_reasons(tmp_path):
    failed = {**LOAD, "verdict": "fail", "reasons": ["iperf3 ended with 1"]}
    page = Page(render_report(make_run(tmp_path, verdict="fail", reasons=["load 1 failed"], loads=[failed])))
    assert "charts" not in page.sections
    assert any("iperf3 ended with 1" in cell for cells in page.cells for cell in cells)
    assert "load 1 failed" in page.text


def test_two_renderings_are_equal(full_run, text):
    assert render_report(full_run) == text


@pytest.mark.slow
def test_another_process_renders_the_same():
    code = (
        "from testbed.planning import make_plan; from testbed.experiments.report.drawing import draw_vlans\n"
        "from testbed.scenario import parse_scenario\n"
        f"plan = make_plan(parse_scenario('{TORUS}', 'made-up.yaml'))\n"
        "print(draw_vlans(plan.topology, plan.vlans, 'v'))"
    )
    one, other = (
        subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in "12"
    )  # fmt: skip
    assert one == other
    assert len(one) > 10000


def test_users_matplotlib_settings_change_nothing(full_run, text):
    with mpl.rc_context({"axes.facecolor": "red", "font.size": 30, "svg.fonttype": "path"}):
        assert render_report(full_run) == text


@pytest.mark.parametrize("place", ["description", "title", "reason", "environment", "file"])
def test_text_of_others_is_escaped(tmp_path, place):
    evil = "<script>alert(1)</script>"
    source = f"{PAIR}\ndescription: {evil}" if place == "description" else PAIR
    load = {**LOAD, "title": evil if place == "title" else "x"}
    run = make_run(
        tmp_path, source, flow_samples(), loads=[load],
        reasons=[evil] if place == "reason" else [],
        files={"a": "<script>.txt"} if place == "file" else {},
    )  # fmt: skip
    if place == "environment":
        run.environment[evil] = {evil: [evil]}
    text = render_report(run)
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_numbers_of_the_table_are_those_of_the_samples(page):
    # Eight samples 900, 901, 910, 911, 920, 921, 930, 931 Mbit/s of 950.
    assert page.row("Goodput") == ["Goodput", "8", "915.5", "900", "931", "Mbit/s", "950", "−3.6 %", "−5.3 %"]


def test_numbers_of_the_plan(full_run, page):
    text = " ".join(" ".join(page.text).split())
    for words in (
        "Switches 16 ", "Switch links 32 ", "Hosts 16 ", "VLANs 8 identifiers 10 to 17",
        f"Rules {len(full_run.plan.rules)} ", "Switches on a path 3 mean over all N² ordered host pairs",
        "Max channel load 8 ", "Deadlock free ", full_run.plan.digest, "5 Mbit/s in place of 1 Gbit/s",
    ):  # fmt: skip
        assert words in text


@pytest.mark.parametrize("verdict", ["pass", "warn", "invalid", "fail"])
def test_verdict_is_said_in_words(tmp_path, verdict):
    reason = "processors were busy"
    page = Page(render_report(make_run(tmp_path, verdict=verdict, reasons=[reason])))
    assert ("span", {"class": f"badge {verdict}"}) in page.elements
    assert reason in page.text


def test_figures_of_an_invalid_load_are_marked(tmp_path):
    text = render_report(make_run(tmp_path, samples=flow_samples(), loads=[{**LOAD, "verdict": "invalid"}]))
    assert '<tbody class="doubtful">' in text
    assert "do not use these figures" in text


def test_all_beside_the_page_is_listed_and_how_to_run_again(tmp_path):
    run = make_run(tmp_path, samples=flow_samples(), loads=[LOAD], started="2026-11-25T16:00:00")
    run.environment["testbed"] = "9.9.9"
    for name in ("manifest.json", "matrix.bin"):
        (run.path / name).write_bytes(b"")
    text = render_report(run)
    links = [values["href"] or "" for tag, values in Page(text).elements if tag == "a"]
    assert {"manifest.json", "matrix.bin"} <= {*links}
    assert "by testbed 9.9.9." in text
    assert "testbed run scenario.yaml" in text
    run.manifest["kind"] = "simulation"
    assert "testbed run scenario.yaml" not in render_report(run)


def test_raw_files_are_listed_in_natural_order_with_safe_links(page):
    links = [values["href"] or "" for tag, values in page.elements if tag == "a"]
    raw = [link for link in links if not link.startswith("#")]
    assert raw[:3] == raw[3:]  # beside the charts of their load, and in the list of files
    assert raw[3:] == ["raw/1/a%20%26%20b%20%231.txt", "raw/1/h2.txt", "raw/1/h10.txt"]


def test_contents_lead_to_every_section(page):
    links = [values["href"] for tag, values in page.elements if tag == "a"]
    assert links[: len(page.sections)] == [f"#{section}" for section in page.sections]


def test_every_drawing_has_words_and_a_table_of_its_figures(full_run, page):
    drawings = [values for tag, values in page.elements if tag == "svg"]
    assert len(drawings) == len([tag for tag, _ in page.elements if tag == "figure"]) == 3
    assert all(values["role"] == "img" and values["aria-label"] for values in drawings)
    assert [values for tag, values in page.elements if values.get("class") == "figures" and tag == "details"] == (
        3 * [{"class": "figures"}]
    )
    # Two repeats of a flow, 910 and 911 Mbit/s of 950.
    assert ["flow", "median (Mbit/s)", "min (Mbit/s)", "max (Mbit/s)", "predicted (Mbit/s)"] in page.cells
    assert page.row("h2→h3") == ["h2→h3", "910.5", "910", "911", "950"]
    direction = full_run.plan.topology.channel_name(9)
    assert page.row(direction) == [direction, "9 %", "10 %"]
    assert page.row("10")[1].count("h") == 2  # of 16 hosts on 8 VLANs


def test_tables_are_read_and_reached_without_a_mouse(page):
    cells = [values for tag, values in page.elements if tag == "th"]
    assert all(values.get("scope") in ("col", "row", "rowgroup") for values in cells)
    wide = [values for _, values in page.elements if values.get("class") == "wide"]
    assert wide
    assert all(values.get("tabindex") == "0" and values.get("aria-label") for values in wide)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["ink", "muted", "measured", "pass", "warn", "bad"])
def test_text_stands_out_from_the_page(name, dark):
    # 4.5 to 1 by WCAG 2, also on the boxes of figures.
    def light(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    for ground in ("paper", "box"):
        high, low = sorted((light(COLOURS[one][dark]) for one in (name, ground)), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, ground


def test_more_rows_than_a_table_shows_are_counted():
    found = sheet("t", ("a",), [[f"{number}"] for number in range(MOST + 3)])
    assert (len(found.rows), found.left_out) == (MOST, 3)


def test_environment_is_shown_whole(page):
    assert ["kernel", "Linux 6.1"] in page.cells
    assert ["cpu · model", "Example"] in page.cells
    assert ["missing", "a module"] in page.cells


@pytest.mark.slow
def test_real_time_and_dilated_runs_say_so(tmp_path):
    assert "real time" in render_report(make_run(tmp_path, f"{PAIR}\nlab: {{dilation: 1}}"))
    chosen = render_report(make_run(tmp_path, dilation=150.0))
    assert "150 times slower" in chosen
    assert "the smallest at which this machine kept up when it was tried" in chosen
    assert "kept up" not in render_report(make_run(tmp_path, f"{PAIR}\nlab: {{dilation: 150}}"))
    without = render_report(make_run(tmp_path, dilation=150.0, dilation_choice={"kept_up_with_job": False}))
    assert "kept up with flows, with an MPI job it did at none that was tried" in without


def test_a_load_that_ran_again_says_so_and_why(tmp_path):
    attempts = [{"dilation": 150.0, "verdict": "invalid", "reasons": ["it was busy", "it was slow"]}]
    loads = [{**LOAD, "dilation": 300.0, "attempts": attempts}]
    page = Page(render_report(make_run(tmp_path, samples=flow_samples(), dilation=150.0, loads=loads)))
    text = " ".join(" ".join(page.text).split())
    assert "These figures are of dilation 300; at 150 it was invalid: it was busy; it was slow" in text
    assert "150; 300 for iperf3 udp neighbour" in text
    assert "In the same way, iperf3 udp neighbour ran 300 times slower." in text


def test_busiest_load_is_drawn_first_and_the_others_folded_away(tmp_path):
    topology = make_run(tmp_path, TORUS).plan.topology
    quiet = [Sample("link_use", 0.01, "ratio", {"load": "1", "channel": "s1→s2"})]
    text = render_report(make_run(tmp_path, TORUS, samples=[*quiet, *use_samples(topology, "2")]))
    first, folded = text.index("during load 2"), text.index("during load 1")
    assert first < text.index("<details><summary>Link utilisation of 1 more load") < folded


def test_fabric_too_large_to_draw_is_not_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr("testbed.experiments.report.drawing.MAX_SWITCHES", 15)
    page = Page(render_report(make_run(tmp_path, TORUS)))
    assert "vlans" not in page.sections
    assert any("16 switches are too many to draw" in text for text in page.text)


def test_matplotlib_is_imported_only_for_a_page():
    code = "import sys, testbed.experiments.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
