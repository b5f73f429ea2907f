"""The live page of a lab in a real browser: loads appear, a link fails on a click, and the path moves."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from testbed.base.model import host_ip
from testbed.engines.lab.control import registry
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.control.client import LabClient
from testbed.engines.lab.control.host_commands import start_inside
from testbed.engines.lab.control.launch import read_start_time
from testbed.planning import Plan
from testbed.ui.live.lab_source import LabSource
from testbed.ui.live.replay import RunSource
from testbed.ui.live.server import Page, listening_socket, serve_page
from tests.json_formats import conforms

from .conftest import plan_of

MANAGED = """
name: managed
topology: {kind: mesh, sizes: [3, 3]}
lab: {dilation: 100, controller: segment_manager}
"""
# Hosts of opposite corners.
SOURCE, DESTINATION = 0, 8
_PATIENCE = 20.0


def until(what, patience: float = _PATIENCE):
    """The first value of a question that is one."""
    end = time.monotonic() + patience
    while not (found := what()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


@contextmanager
def browser(width: int = 1280, height: int = 900, *, dark: bool = False) -> Iterator[Chrome]:
    programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
    assert all(programs), "scripts/setup dev installs chromium and chromium-driver"
    options = ChromeOptions()
    options.binary_location = str(programs[0])
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options, Service(programs[1]))
    try:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        yield driver
    except BaseException:
        sys.stderr.write(driver.find_element(By.TAG_NAME, "body").text + "\n")
        raise
    finally:
        driver.quit()


def picture(driver: Chrome, name: str) -> None:
    """Keep what the page looks like, where a folder is named."""
    if folder := os.environ.get("TESTBED_SCREENSHOTS"):
        driver.save_screenshot(str(Path(folder) / f"{name}.png"))


def text(driver: Chrome, element: str) -> str:
    return driver.find_element(By.ID, element).text


def numbers(driver: Chrome) -> list[int]:
    """The uses that stand at links."""
    found = driver.execute_script("return [...document.querySelectorAll('.load')].map((one) => one.textContent)")
    return [int(one) for one in found if one]


def complaints(driver: Chrome) -> list[str]:
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def source_of(lab: LabClient, plan: Plan) -> LabSource:
    entry = registry.Entry("managed", lab.namespaces.init, read_start_time(lab.namespaces.init), "managed", plan.digest)
    return LabSource(plan, "managed", lambda: entry if entry.holds else None)


@contextmanager
def load(lab: LabClient, plan: Plan, rate: str) -> Iterator[None]:
    """UDP between the corners while the block runs."""
    commands = (
        (DESTINATION, ["iperf3", "-s"]),
        (SOURCE, ["iperf3", "-c", host_ip(DESTINATION), "-u", "-b", rate, "-t", "300"]),
    )
    running = []
    try:
        for host, command in commands:
            name = plan.wiring.host_name(host)
            place = lab.namespaces.init, lab.facts.holders[name], lab.facts.groups.get(name)
            running.append(start_inside(*place, command, lab.facts.host_access))
            time.sleep(0.5)
        yield
    finally:
        for one in reversed(running):
            one.stop()


def click(driver: Chrome, element: str) -> None:
    driver.execute_script("document.getElementById(arguments[0]).dispatchEvent(new MouseEvent('click'))", element)


@pytest.mark.long
@pytest.mark.quiet(seat=1)  # it times the first picture
@pytest.mark.usefixtures("untouched")
def test_loads_appear_and_a_failure_by_a_click_moves_the_path():
    plan = plan_of(MANAGED)
    with build_lab(plan) as lab, listening_socket(None) as listening:
        lab.wait_for_controller()
        with serve_page(Page(source_of(lab, plan)), listening) as address, browser() as driver, load(lab, plan, "5M"):
            began = time.monotonic()
            driver.get(address)
            until(lambda: driver.find_elements(By.CSS_SELECTOR, ".channel"))
            assert time.monotonic() - began < 30
            until(lambda: any(40 <= one <= 65 for one in numbers(driver)))  # 5 of 10 Mbit/s, on each hop
            click(driver, f"host-{SOURCE}")
            until(lambda: "kbit/s" in text(driver, "flows") or "Mbit/s" in text(driver, "flows"))
            picture(driver, "host")
            click(driver, f"host-{DESTINATION}")
            until(lambda: "4 hops, as planned" in text(driver, "way-note"))
            before = text(driver, "hops")
            assert "no link in common" in text(driver, "backups")
            picture(driver, "path")
            first = LabSource(plan, "managed", lambda: None).ways.planned_channels(SOURCE, DESTINATION)[1][0]
            click(driver, f"link-{first // 2}")
            until(lambda: text(driver, "link-state") == "up, 1 Gbit/s")
            until(lambda: driver.find_elements(By.CSS_SELECTOR, ".chart polyline[points]"))
            picture(driver, "link")
            driver.find_element(By.ID, "toggle").click()
            until(lambda: text(driver, "link-state") == "down, 1 Gbit/s")
            name = plan.wiring.channel_name(first - first % 2).replace("→", "-")
            assert f"testbed link managed {name} --down" in text(driver, "lines")
            assert not lab.link_states()[first // 2].up
            wanted = driver.find_element(By.ID, "wanted")
            wanted.send_keys(f"{plan.wiring.host_name(SOURCE)} {plan.wiring.host_name(DESTINATION)}", Keys.ENTER)
            until(lambda: "not by the planned path" in text(driver, "way-note"))
            assert text(driver, "hops") != before
            until(lambda: any(40 <= one <= 65 for one in numbers(driver)))  # the load has moved, too
            picture(driver, "moved")
            assert complaints(driver) == []
        assert "ended" not in lab.status().doing


@pytest.mark.usefixtures("untouched")
def test_a_page_on_a_phone_keeps_its_last_picture_at_the_end(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = plan_of("name: small\ntopology: {kind: mesh, sizes: [2, 2]}\nlab: {dilation: 100}")
    with (
        listening_socket(None) as listening,
        build_lab(plan) as lab,
        serve_page(Page(source_of(lab, plan)), listening) as address,
        browser(390, 844, dark=True) as driver,
    ):
        driver.get(address)
        until(lambda: text(driver, "state") == "live")
        wide = driver.execute_script("return document.documentElement.scrollWidth")
        assert wide <= 390
        stage = driver.find_element(By.ID, "fabric")
        stage.send_keys(Keys.ARROW_RIGHT)
        stage.send_keys(Keys.ARROW_RIGHT)
        assert "Link s1-s3" in text(driver, "panel")
        driver.find_element(By.ID, "capture").click()
        until(lambda: driver.find_element(By.ID, "capture").text == "Stop capture")
        driver.find_element(By.ID, "capture").click()
        until(lambda: "frames" in text(driver, "lines") and driver.find_element(By.ID, "capture").text == "Capture")
        (file,) = tmp_path.glob("*.pcapng")
        assert file.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
        driver.execute_script("document.getElementsByName('rate')[0].value = '<img src=x onerror=alert(1)>'")
        driver.find_element(By.ID, "change").click()
        until(lambda: "should be a rate above 0" in text(driver, "lines"))
        assert not driver.find_elements(By.TAG_NAME, "img")
        picture(driver, "phone-dark")
        lab.end()
        until(lambda: text(driver, "banner") == "the lab has ended; this is the last picture")
        assert driver.find_elements(By.CSS_SELECTOR, ".channel")
        picture(driver, "ended")


# Numbers that are cut off, and pairs of which one is on the other, if each direction carries all it can.
_UNREADABLE = """
const numbers = [...document.querySelectorAll("#fabric .load")];
for (const one of numbers) one.textContent = "100";
const frame = document.getElementById("fabric").getBoundingClientRect();
const places = numbers.map((one) => one.getBoundingClientRect());
const within = (one) => one.left >= frame.left && one.right <= frame.right
  && one.top >= frame.top && one.bottom <= frame.bottom;
const across = (one, other) => one.left < other.right && other.left < one.right;
const down = (one, other) => Math.abs(one.top + one.bottom - other.top - other.bottom) < one.height;
const both = (one) => (other) => across(one, other) && down(one, other);
const pairs = places.flatMap((one, at) => places.slice(at + 1).filter(both(one)));
return [numbers.length, numbers.length - places.filter(within).length, pairs.length];
"""


@pytest.mark.parametrize("width", [1280, 390])
def test_numbers_of_all_links_can_be_read(width):
    plan = plan_of("name: torus\ntopology: {kind: torus, sizes: [4, 4]}")
    page = Page(LabSource(plan, "torus", lambda: None))
    with listening_socket(None) as listening, serve_page(page, listening) as address, browser(width) as driver:
        driver.get(address)
        until(lambda: driver.find_elements(By.CSS_SELECTOR, ".channel"))
        assert driver.execute_script(_UNREADABLE) == [64, 0, 0]


def test_names_with_markup_are_names():
    evil = "<img src=x onerror='document.body.id=1'></title><b>x</b>"
    plan = plan_of("name: small\ntopology: {kind: mesh, sizes: [2, 2]}")
    page = Page(LabSource(plan, evil, lambda: None))
    with listening_socket(None) as listening, serve_page(page, listening) as address, browser() as driver:
        driver.get(address)
        until(lambda: driver.find_elements(By.CSS_SELECTOR, ".channel"))
        assert evil in driver.find_element(By.TAG_NAME, "body").text
        assert evil in driver.title
        driver.find_element(By.ID, "words").send_keys(evil, Keys.ENTER)
        until(lambda: said(driver, evil))
        assert not driver.find_elements(By.CSS_SELECTOR, "img, b, body[id]")


@contextmanager
def program(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A command while the block runs, which ends it if nothing else has."""
    command = [sys.executable, "-m", "testbed", *words]
    errors = None if "--json" in words else subprocess.STDOUT
    with subprocess.Popen(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=errors) as started:
        try:
            yield started
        finally:
            started.kill()


def said(driver: Chrome, words: str) -> bool:
    """Whether the log has these words."""
    return words in text(driver, "lines")


@pytest.mark.long
@pytest.mark.usefixtures("untouched")
def test_a_lab_is_loaded_regulated_and_a_switch_killed_by_page(tmp_path):
    (tmp_path / "small.yaml").write_text(
        "topology: {kind: ring, switches: 4}\nrouting: {kind: updown, selection: tree}\n"
        "assignment: {kind: fixed}\nengine: realtime\nlab: {dilation: 100}\n"
        "workloads: [{kind: iperf3, protocol: udp, pattern: 'pairs:h1>h2', seconds: 200, omit: 0, repeats: 1}]\n"
    )
    with program(tmp_path, "up", "small.yaml", "--name", "shown", "--live", "--json") as page:
        told = ""
        for line in page.stdout:
            told += line
            if line == "}\n":
                break
        try:
            assert conforms("up", told)["lab"] == "shown"
            address = json.loads(told)["address"]
            assert address.startswith("http://127.0.0.1:")
            with browser(390, 844) as driver:
                driver.get(address)
                until(lambda: text(driver, "state") == "live")
                press_buttons(driver)
                assert complaints(driver) == []
            page.send_signal(signal.SIGINT)
            assert page.wait(20) == 0
            assert registry.find("shown").holds
        finally:
            subprocess.run([sys.executable, "-m", "testbed", "down", "shown"], check=True, stdout=subprocess.DEVNULL)


def press_buttons(driver: Chrome) -> None:
    """A load of the page's own; links that it does not need; a switch."""
    press = driver.find_element
    press(By.ID, "run").click()
    until(lambda: said(driver, "testbed load shown"))
    until(lambda: max(numbers(driver), default=0) > 50, 90)
    press(By.ID, "regulate").click()
    until(lambda: said(driver, "1 of 4 links are off"), 40)
    assert said(driver, "testbed regulate shown --running --seconds 5")
    until(lambda: len(driver.find_elements(By.CSS_SELECTOR, "#fabric .channel.down")) == 2)
    until(lambda: max(numbers(driver), default=0) > 50)  # the load goes on
    picture(driver, "regulated")
    press(By.ID, "all-on").click()
    until(lambda: said(driver, "all 4 links are on"), 40)
    until(lambda: not driver.find_elements(By.CSS_SELECTOR, "#fabric .channel.down"))
    click(driver, "switch-1")
    press(By.ID, "kill").click()
    until(lambda: said(driver, "s2: killed") and text(driver, "switch-state") == "killed")
    assert said(driver, "testbed switch shown s2 --kill")
    until(lambda: numbers(driver) == [])  # h2 hears nothing any more
    picture(driver, "killed")
    press(By.ID, "kill").click()
    until(lambda: text(driver, "switch-state") == "running")
    until(lambda: max(numbers(driver), default=0) > 50)
    driver.find_element(By.ID, "fabric").send_keys(Keys.ESCAPE)
    press(By.ID, "end").click()
    until(lambda: said(driver, "testbed load shown ended"))
    until(lambda: not driver.find_element(By.ID, "end").is_displayed())


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.usefixtures("untouched")
def test_a_run_is_shown_with_its_deadlock_and_played_afterwards(tmp_path):
    text_of = Path("scenarios/ring5-deadlock.yaml").read_text(encoding="utf-8")
    first = "workloads:\n  - {kind: iperf3, protocol: udp, pattern: 'pairs:h1>h5', seconds: 2, omit: 0, repeats: 1}"
    (tmp_path / "ring.yaml").write_text(text_of.replace("workloads:", first), encoding="utf-8")
    slow = ("--set", "lab.dilation=100")  # at which frames are on time on a busy machine, too
    with program(tmp_path, "run", "ring.yaml", "--live", *slow) as run, browser() as driver:
        address = next(line for line in run.stdout if "http://" in line).split("live: ")[1].strip()
        driver.get(address)
        until(
            lambda: text(driver, "banner").startswith("the lab is not there yet") or text(driver, "state") != "loading"
        )
        until(lambda: text(driver, "banner").startswith("Deadlock: "), 60)
        cycle = (
            text(driver, "banner").removeprefix("Deadlock: ").removesuffix(" wait for each other for ever.").split(", ")
        )
        drawn = driver.find_elements(By.CSS_SELECTOR, ".channel.cycle")
        assert len(drawn) == len(cycle) == 5
        around = [name.split("→") for name in cycle]
        assert {start for start, _ in around} == {end for _, end in around}
        picture(driver, "deadlock")
        assert run.wait(60) == 0  # the scenario says so
        until(lambda: text(driver, "state") == "not connected")
        assert text(driver, "banner").endswith("this is the last picture.") or "has ended" in text(driver, "banner")
        (folder,) = (tmp_path / "results").iterdir()
        with listening_socket(None) as listening, serve_page(Page(RunSource(folder)), listening) as played:
            play(driver, played)


def play(driver: Chrome, address: str) -> None:
    """The same page, from the folder of the run."""
    driver.get(address)
    until(lambda: text(driver, "state") == "a finished run")
    until(lambda: text(driver, "moment"))
    assert not driver.find_elements(By.ID, "run")
    slider = driver.find_element(By.ID, "slider")
    assert int(slider.get_attribute("max") or 0) > 3
    before = text(driver, "moment")
    slider.send_keys(Keys.ARROW_RIGHT)
    until(lambda: text(driver, "moment") != before)
    driver.find_element(By.ID, "play").click()
    until(lambda: int(slider.get_attribute("value") or 0) > 3 and any(numbers(driver)))
    click(driver, "link-0")
    until(lambda: driver.find_elements(By.CSS_SELECTOR, ".chart .now[visibility=visible]"))
    until(lambda: driver.find_element(By.CSS_SELECTOR, ".chart polyline.first").get_attribute("points"))
    assert not driver.find_elements(By.ID, "toggle")
    picture(driver, "replay")
