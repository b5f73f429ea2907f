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

from testbed.emulate import registry
from testbed.emulate.build import build_lab
from testbed.emulate.client import LabClient
from testbed.emulate.inside import start_inside
from testbed.emulate.launch import born
from testbed.live.server import Page, listening_socket, serving
from testbed.live.source import LabSource
from testbed.model import host_ip
from testbed.plan import Plan
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
    entry = registry.Entry("managed", lab.namespaces.init, born(lab.namespaces.init), "managed", plan.digest, 0.0)
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


@pytest.mark.usefixtures("untouched")
def test_loads_appear_and_a_link_that_fails_on_a_click_moves_the_path():
    plan = plan_of(MANAGED)
    with build_lab(plan) as lab, listening_socket(None) as listening:
        lab.wait_for_controller()
        with serving(Page(source_of(lab, plan)), listening) as address, browser() as driver, load(lab, plan, "5M"):
            began = time.monotonic()
            driver.get(address)
            until(lambda: driver.find_elements(By.CSS_SELECTOR, ".channel"))
            assert time.monotonic() - began < 5
            until(lambda: any(40 <= one <= 65 for one in numbers(driver)))  # 5 of 10 Mbit/s, on each hop
            click(driver, f"host-{SOURCE}")
            until(lambda: "kbit/s" in text(driver, "flows") or "Mbit/s" in text(driver, "flows"))
            picture(driver, "host")
            click(driver, f"host-{DESTINATION}")
            until(lambda: "4 hops, as planned" in text(driver, "way-note"))
            before = text(driver, "hops")
            assert "no link in common" in text(driver, "backups")
            picture(driver, "path")
            first = LabSource(plan, "managed", lambda: None).ways.planned(SOURCE, DESTINATION)[1][0]
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
def test_a_page_on_a_phone_keeps_its_last_picture_when_the_lab_ends(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = plan_of("name: small\ntopology: {kind: mesh, sizes: [2, 2]}\nlab: {dilation: 100}")
    with (
        listening_socket(None) as listening,
        build_lab(plan) as lab,
        serving(Page(source_of(lab, plan)), listening) as address,
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


@pytest.mark.usefixtures("untouched")
def test_the_command_prints_an_address_and_ends_with_ctrl_c(tmp_path):
    (tmp_path / "small.yaml").write_text("topology: {kind: mesh, sizes: [2]}\nlab: {dilation: 100}\n")
    words = [sys.executable, "-m", "testbed", "up", "small.yaml", "--name", "shown"]
    page = subprocess.Popen([*words, "--live", "--json"], stdout=subprocess.PIPE, cwd=tmp_path, text=True)
    try:
        said = ""
        for line in page.stdout:
            said += line
            if line == "}\n":
                break
        told = json.loads(said)
        assert conforms("up", said)["lab"] == "shown"
        assert told["address"].startswith("http://127.0.0.1:")
        page.send_signal(signal.SIGINT)
        assert page.wait(20) == 0
        assert registry.find("shown").holds
    finally:
        page.kill()
        page.wait()
        page.stdout.close()
        subprocess.run([sys.executable, "-m", "testbed", "down", "shown"], check=True, stdout=subprocess.DEVNULL)
