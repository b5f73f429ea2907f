"""The server of the live page without a lab: who may ask, what viewers are told, what buttons do."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from testbed.base.errors import LabError
from testbed.base.messages import Disturbed, LinkReadings, LinkState, PairReadings, PathTrace
from testbed.engines.ovs.check_paths import follow_frame
from testbed.fabric.openflow.rule_text import format_rule
from testbed.planning import Plan
from testbed.ui.live.actions import Actions
from testbed.ui.live.lab_source import GoneError, LabSource
from testbed.ui.live.server import Page, listening_socket, serve_page
from testbed.ui.live.subscribers import Hub
from tests.fabrics import plan_of
from tests.unit.ui.test_command_line import command

MARKUP = "<img src=x onerror=alert(1)>"


# -------------------------------------------------------------------------------------------------- a lab that is none


def dumped(plan: Plan) -> dict[str, list[str]]:
    rules: dict[str, list[str]] = {}
    for rule in plan.rules:
        rules.setdefault(plan.topology.switch_name(rule.switch), []).append(format_rule(rule))
    return rules


class Lab:
    """What a lab answers, without one."""

    facts = SimpleNamespace(controller=None, dilation=10.0, pace="")

    def __init__(self) -> None:
        self.asked = 0
        self.states: dict[int, LinkState] = {}
        self.ended = False
        self.killed: list[str] = []

    def read_links(self) -> LinkReadings:
        if self.ended:
            raise LabError("the lab ended while it was in use")
        self.asked += 1
        count = 2 * self.built.wiring.link_count
        hosts = self.built.wiring.host_count
        every = count + 2 * hosts
        return LinkReadings(
            time.monotonic(), 10.0, (self.asked * 1000,) * every, (self.asked,) * every, (1e6,) * (count + hosts),
            (0,) * (count + hosts), (0,) * (count + hosts),
        )  # fmt: skip

    built = plan_of("mesh", sizes=[2, 2])

    def plan(self) -> Plan:
        return self.built

    def link_states(self) -> dict[int, LinkState]:
        return self.states

    def status(self) -> SimpleNamespace:
        return SimpleNamespace(doing="idle", killed=tuple(self.killed))

    def trace_path(self, plan, source, destination) -> PathTrace:
        return follow_frame(plan, dumped(plan), None, source, destination)

    def read_pairs(self) -> PairReadings:
        return PairReadings(1.0, ((2, 1, 1), (2, 2, 2), (2, 3, 3), (0, 2, 7), (0, 1, 9)))

    def disturb(self, disturbance) -> Disturbed:
        for channel in disturbance.channels:
            self.states[channel // 2] = LinkState(up=disturbance.up)
        for switch in disturbance.switches:
            name = self.built.wiring.switch_name(switch)
            self.killed = [one for one in self.killed if one != name] + ([] if disturbance.up else [name])
        for change in disturbance.links:
            self.states[change.link] = LinkState().apply_change(change)
        return Disturbed(0.0, 0.0)

    def abort(self) -> None:
        self.ended = True

    def close(self) -> None:
        pass


@pytest.fixture
def lab(monkeypatch) -> Lab:
    made = Lab()
    for module in ("lab_source", "background_jobs"):
        monkeypatch.setattr(f"testbed.ui.live.{module}.connect", lambda namespaces: made)
    monkeypatch.setattr("testbed.engines.lab.control.registry.loading", lambda entry: nullcontext())
    return made


@pytest.fixture
def source(lab) -> LabSource:
    class Standing:
        namespaces = None

        @property
        def holds(self) -> bool:
            return not lab.ended

    return LabSource(lab.built, "some-lab", lambda: None if lab.ended else Standing())  # type: ignore[return-value,arg-type]


@contextmanager
def open_page(source) -> Iterator[tuple[Page, str]]:
    page = Page(source)
    with listening_socket(None) as listening, serve_page(page, listening) as address:
        yield page, address


def ask(address: str, path: str = "", method: str = "GET", body=None, **headers) -> tuple[int, str]:
    where = urlsplit(address)
    with closing(http.client.HTTPConnection(str(where.hostname), where.port, timeout=10)) as connection:
        connection.request(method, where.path + path, body, headers)
        found = connection.getresponse()
        return found.status, found.read().decode()


def do(address: str, **what) -> tuple[int, dict[str, Any]]:
    code, text = ask(address, "do", "POST", json.dumps(what), **{"Content-Type": "application/json"})
    return code, json.loads(text)


# ----------------------------------------------------------------------------------------------------------------- who


@pytest.mark.parametrize(
    "headers",
    [
        {}, {"Host": "localhost:PORT"}, {"Origin": "http://127.0.0.1:PORT", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "http://localhost:PORT"}, {"Sec-Fetch-Site": "none"},
    ],
)  # fmt: skip
def test_the_page_itself_may_ask(source, headers):
    with open_page(source) as (_, address):
        assert ask(address, "fabric", **with_port(address, headers))[0] == 200


def test_what_is_answered_goes_nowhere_else(source):
    with open_page(source) as (_, address):
        where = urlsplit(address)
        with closing(http.client.HTTPConnection(str(where.hostname), where.port, timeout=10)) as connection:
            for path, code in ((where.path, 200), ("/", 403)):
                connection.request("GET", path)
                found = connection.getresponse()
                found.read()
                assert found.status == code
                assert "script-src 'self'" in str(found.getheader("content-security-policy"))
                assert found.getheader("referrer-policy") == "no-referrer"
                assert found.getheader("x-frame-options") == "DENY"
                assert found.getheader("cache-control") == "no-store"


@pytest.mark.parametrize(
    ("path", "headers", "why"),
    [
        ("/", {}, "token"),
        ("/fabric", {}, "token"),
        ("/TOKE/fabric", {}, "token"),
        ("/TOKENx/fabric", {}, "token"),
        ("/TOKEN%00/fabric", {}, "token"),
        ("/%C3%A9/fabric", {}, "token"),
        ("//fabric", {}, "token"),
        ("/TOKEN/fabric", {"Host": "evil.example:PORT"}, "this machine"),
        ("/TOKEN/fabric", {"Host": "127.0.0.1:1"}, "this machine"),
        ("/TOKEN/fabric", {"Host": "127.0.0.1"}, "this machine"),
        ("/TOKEN/fabric", {"Origin": "http://evil.example"}, "other pages"),
        ("/TOKEN/fabric", {"Origin": "null"}, "other pages"),
        ("/TOKEN/fabric", {"Origin": "https://127.0.0.1:PORT"}, "other pages"),
        ("/TOKEN/fabric", {"Origin": "http://127.0.0.1:1"}, "other pages"),
        ("/TOKEN/fabric", {"Sec-Fetch-Site": "cross-site"}, "other pages"),
        ("/TOKEN/events", {"Origin": "http://evil.example"}, "other pages"),
    ],
)
def test_nobody_else_may(source, path, headers, why):
    with open_page(source) as (_, address):
        token = urlsplit(address).path.strip("/")
        path = path.replace("TOKEN", token).replace("TOKE", token[:-1])
        code, text = ask(address.replace(f"{token}/", ""), path.removeprefix("/"), **with_port(address, headers))
        assert code == 403
        assert why in text


@pytest.mark.slow
def test_each_page_has_a_token_of_its_own(source):
    with open_page(source) as (_, first), open_page(source) as (_, second):
        tokens = [urlsplit(one).path.strip("/") for one in (first, second)]
        assert tokens[0] != tokens[1]
        assert min(map(len, tokens)) >= 32
        assert ask(first.replace(tokens[0], tokens[1]), "fabric")[0] == 403


def with_port(address: str, headers: dict[str, str]) -> dict[str, str]:
    return {name: value.replace("PORT", str(urlsplit(address).port)) for name, value in headers.items()}


# ------------------------------------------------------------------------------------------------------------- viewers


def test_a_slow_viewer_gets_the_newest_reading_and_every_line():
    async def scene() -> None:
        hub = Hub()
        with hub.viewer() as slow, hub.viewer() as quick:
            for number in range(1000):
                hub.show(f"reading {number}")
                assert await quick.next(1) == [f"reading {number}"]
            hub.tell("line")
            assert slow.missed == 999
            assert await slow.next(1) == ["line", "reading 999"]
            assert await slow.next(0.01) == []
            assert await quick.next(1) == ["line"]
            assert quick.missed == 0
            hub.show("last")
            hub.close()
            assert await slow.next(1) == ["last"]
            assert await slow.next(1) is None
            assert hub.somebody.is_set()
        assert not hub.viewers
        assert not hub.somebody.is_set()

    asyncio.run(scene())


def test_lines_that_nobody_fetches_are_bounded():
    async def scene() -> None:
        hub = Hub()
        with hub.viewer() as viewer:
            for number in range(10_000):
                hub.tell(f"line {number}")
            kept = await viewer.next(1)
        assert kept is not None
        assert kept[-1] == "line 9999"
        assert len(kept) < 100

    asyncio.run(scene())


# -------------------------------------------------------------------------------------------------------- what it does


@contextmanager
def events(address: str) -> Iterator[Iterator[dict[str, Any]]]:
    """Messages as they come."""
    where = urlsplit(address)
    with closing(http.client.HTTPConnection(str(where.hostname), where.port, timeout=10)) as connection:
        connection.request("GET", where.path + "events")
        answered = connection.getresponse()
        assert answered.getheader("content-type").startswith("text/event-stream")

        def each() -> Iterator[dict[str, Any]]:
            for line in answered:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])

        with answered:
            yield each()


@pytest.mark.slow
def test_nothing_is_read_while_nobody_looks_and_all_see_the_same(lab, source):
    with open_page(source) as (page, address):
        time.sleep(0.5)
        assert lab.asked == 0
        with events(address) as first, events(address) as second:
            for viewer in (first, second):
                found = next(viewer)["reading"]
                assert len(found["use"]) == 2 * lab.built.wiring.link_count + 2 * lab.built.wiring.host_count
                assert found["doing"] == "idle"
            before = lab.asked
            for _ in range(8):
                next(first)
            assert lab.asked - before < 16
        until = time.monotonic() + 15
        while page.hub.viewers:
            assert time.monotonic() < until
            time.sleep(0.05)
        time.sleep(0.3)
        asked = lab.asked
        time.sleep(0.5)
        assert lab.asked == asked


@pytest.mark.slow
def test_a_viewer_that_does_not_read_holds_nobody_up(lab, source):
    with open_page(source) as (_, address):
        where = urlsplit(address)
        with closing(socket.create_connection(("127.0.0.1", int(where.port or 0)))) as deaf:
            deaf.sendall(f"GET {where.path}events HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode())
            with events(address) as viewer:
                began = time.monotonic()
                for _ in range(10):
                    next(viewer)
                assert time.monotonic() - began < 30  # not at all, if it did


@pytest.mark.slow
def test_a_lab_that_ends_is_told_and_one_that_returns_is_shown(lab, source):
    with open_page(source) as (_, address), events(address) as viewer:
        assert "reading" in next(viewer)
        lab.ended = True
        while "trouble" not in (message := next(viewer)):
            pass
        assert message == {"trouble": "the lab has ended", "gone": True}
        assert json.loads(ask(address, "way?from=0&to=1")[1]) == {"problem": "the lab has ended"}
        lab.ended = False
        while "reading" not in next(viewer):
            pass


def test_the_page_ends_at_once_although_somebody_looks(source):
    with ExitStack() as watching:
        rest: list[dict[str, Any]] = []
        with open_page(source) as (_, address):
            viewer = watching.enter_context(events(address))
            next(viewer)
            reader = threading.Thread(target=lambda: rest.extend(viewer))
            reader.start()
            began = time.monotonic()
        assert time.monotonic() - began < 15
        reader.join(10)
        assert not reader.is_alive()


def test_what_the_page_asks_for_is_answered(lab, source):
    with open_page(source) as (_, address):
        assert ask(address)[0] == 200
        for name in ("live.css", "main.js", "fabric.js", "lab.js", "panel.js", "chart.js", "words.js"):
            code, text = ask(address, name)
            assert code == 200
            assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
            assert "innerHTML" not in text
        assert json.loads(ask(address, "fabric")[1])["lab"] == "some-lab"
        way = json.loads(ask(address, "way?from=0&to=3")[1])
        assert way["planned"]
        flows = json.loads(ask(address, "host?host=2")[1])
        assert (flows["sent"], flows["received"]) == ([0, 1, 2, 3], [7, 0, 2, 0])
        assert ask(address, "nothing")[0] == 404
        assert ask(address.replace(address.split("/")[3], "x" * 32), "fabric")[0] == 403


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("way?from=0", 'to: should be a number from 0 to 3, not ""'),
        ("way?from=-1&to=0", 'from: should be a number from 0 to 3, not "-1"'),
        ("way?from=0&to=99", 'to: should be a number from 0 to 3, not "99"'),
        ("way?from=2&to=2", "to: should be another host"),
        ("host?host=%3Cb%3E", 'host: should be a number from 0 to 3, not "<b>"'),
        ("reading?load=0&reading=0", "reading: a running lab has none that are over"),
    ],
)
def test_questions_that_make_no_sense_get_a_sentence(source, path, problem):
    with open_page(source) as (_, address):
        code, text = ask(address, path)
        assert (code, json.loads(text)) == (400, {"problem": problem})


def test_buttons_do_what_commands_do_and_say_which(lab, source):
    with open_page(source) as (_, address), events(address) as viewer:
        lost = "frames that take it are lost, since no lab.controller: segment_manager moves paths away"
        name = lab.built.wiring.channel_name(2).replace("→", "-")
        expected = {
            "command": f"testbed link some-lab {name} --down",
            "said": f"{name}: down, rate 1 Gbit/s (as planned), delay 0 s, loss 0 %; {lost}",
            "wrong": False,
        }
        assert do(address, do="down", link=1) == (200, expected)
        assert lab.states == {1: LinkState(up=False)}
        while "line" not in (message := next(viewer)):
            pass
        assert message["line"] == expected
        while not (message := next(viewer).get("reading", {})).get("links"):
            pass
        assert message["links"]["1"]["up"] is False
        code, told = do(address, do="change", link=0, rate="100M", delay="", loss="")
        assert code == 200
        assert told["command"].endswith("--rate 100M")
        assert lab.states[0].rate == 1e8
        assert do(address, do="up", link=1)[0] == do(address, do="reset", link=0)[0] == 200


def test_a_switch_is_killed_and_started_if_it_returns_with_rules(lab, source, monkeypatch):
    facts = SimpleNamespace(controller="segment_manager", datapath="userspace", switch_daemons=(("s1", "s3"), ("s2",)))
    monkeypatch.setattr(lab, "facts", facts, raising=False)
    with open_page(source) as (_, address), events(address) as viewer:
        told = {"command": "testbed switch some-lab s2 --kill", "said": "s2: killed", "wrong": False}
        assert do(address, do="kill", switch=1) == (200, told)
        while next(viewer).get("reading", {}).get("killed") != ["s2"]:
            pass
        assert do(address, do="kill", switch=1)[1]["problem"] == "s2: s2 has been killed already"
        shared = do(address, do="kill", switch=0)[1]["problem"]
        assert shared.startswith("s1: s1 shares its process with s3")
        assert do(address, do="start", switch=1)[1]["said"] == "s2: running"
        assert lab.killed == []


def test_one_thing_at_a_time_is_under_way_and_can_be_ended(lab, source, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    going, seen = threading.Event(), []

    def load_lab(lab, plan, results, progress, asked):
        seen.append((plan.scenario.workloads[0].kind, asked.words))
        progress("pinging")
        going.set()
        while not lab.ended:
            time.sleep(0.01)
        lab.ended = False
        raise LabError("the lab ended while it was in use")

    monkeypatch.setattr("testbed.ui.live.background_jobs.load_lab", load_lab)
    with open_page(source) as (page, address), events(address) as viewer:
        command = "testbed load some-lab ping count=3"
        assert do(address, do="load", words="ping count=3")[1] == {
            "command": command, "said": "the load runs", "wrong": False,
        }  # fmt: skip
        assert going.wait(10)
        assert seen == [("ping", ("some-lab", "ping", "count=3"))]
        while next(viewer).get("reading", {}).get("jobs") != {"load": "pinging"}:
            pass
        problem = "load: one is under way; end it first, or wait for its end"
        assert do(address, do="load") == (400, {"problem": problem})
        assert do(address, do="end")[0] == 200
        while (line := next(viewer).get("line", {})).get("said") != "ended":
            pass
        assert line == {"command": command, "said": "ended", "wrong": False}
        assert page.actions is not None
        assert page.actions.jobs == {}
        going.clear()
        assert do(address, do="load", words="ping")[0] == 200
        assert going.wait(10)
    assert page.actions.jobs == {}  # the end of the page has ended it


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ({}, "do: should be down, up, reset, change, capture, stop, kill, start, load, regulate, all on or end"),
        ({"do": "down", "link": 99}, 'link: should be a number from 0 to 3, not "99"'),
        ({"do": "down"}, 'link: should be a number from 0 to 3, not "None"'),
        ({"do": "change", "link": 0}, "change: name a rate, a delay or a loss"),
        ({"do": "change", "link": 0, "rate": MARKUP}, "rate: should be a rate above 0"),
        ({"do": "change", "link": 0, "rate": "1k"}, "rate: "),
        ({"do": "stop", "host": 1}, "h2: is not being captured"),
        ({"do": "capture", "host": 9}, 'host: should be a number from 0 to 3, not "9"'),
        ({"do": "kill", "switch": 9}, 'switch: should be a number from 0 to 3, not "9"'),
        ({"do": "kill", "switch": 1}, "s2: s2 would come back without rules, since nobody installs them anew"),
        ({"do": "start", "switch": 1}, "s2: s2 is running already"),
        ({"do": "load", "words": MARKUP}, "<img: is neither a running lab nor a kind of load"),
        ({"do": "load", "words": "iperf3 'udp"}, "load: No closing quotation; write words as for testbed load"),
        ({"do": "load", "words": "iperf3 protocol=sctp"}, "protocol: "),
        ({"do": "load", "words": "x" * 1001}, "load: should be 1000 characters at most"),
        ({"do": "regulate"}, "regulate: needs a controller that changes plans under traffic"),
        ({"do": "all on"}, "regulate: needs a controller that changes plans under traffic"),
        ({"do": "end"}, "end: nothing is under way"),
    ],
)
def test_buttons_that_make_no_sense_get_a_sentence(source, lab, what, problem):
    with open_page(source) as (_, address):
        code, told = do(address, **what)
        assert code == 400
        assert told["problem"].startswith(problem)
        assert lab.states == {}


def test_requests_of_another_form_are_refused(source):
    with open_page(source) as (_, address):
        as_json = {"Content-Type": "application/json"}
        body = json.dumps({"do": "down", "link": 0})
        assert ask(address, "do", "POST", body)[0] == 400
        assert ask(address, "do", "POST", body, **{"Content-Type": "text/plain"})[0] == 400
        assert ask(address, "do", "POST", "{", **as_json)[0] == 400
        assert ask(address, "do", "POST", "[1]", **as_json)[0] == 400
        assert ask(address, "do", "POST", json.dumps({"do": "x" * 9000}), **as_json)[0] == 400
        assert ask(address, "do")[0] == 405


def test_a_capture_that_cannot_begin_leaves_nothing_behind(source, lab, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "testbed.ui.live.actions.connect", lambda namespaces: (_ for _ in ()).throw(GoneError("it has ended"))
    )
    actions = Actions(source, lambda line: None)
    with pytest.raises(GoneError):
        actions.do({"do": "capture", "link": 0})
    assert actions.capturing == []
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------------- ports and folders


def test_a_port_that_is_taken_gets_a_sentence(monkeypatch):
    with listening_socket(None) as taken:
        port = taken.getsockname()[1]
        done = command("live", "no-lab", "--port", str(port))
    assert done.returncode == 2
    assert f"--port: {port} cannot be had: Address already in use; name another one" in done.stderr
    assert "should be from 1 to 65535, not 70000" in command("live", "no-lab", "--port", "70000").stderr


def test_a_lab_or_folder_that_is_not_there_gets_a_sentence(tmp_path):
    done = command("live", str(tmp_path / "nothing"))
    assert (done.returncode, "is not a result folder" in done.stderr) == (2, True)
    assert command("live", "no-such-lab").returncode == 2


def test_an_engine_without_a_lab_here_is_refused_before_building():
    done = command("run", "ring4", "--engine", "simulate", "--live")
    assert done.returncode == 2
    assert "engine: is simulate, and this command needs a lab on this machine" in done.stderr
    done = command("run", "ring4", "--machines", "a,b", "--cluster", "tcp://a:1", "--live")
    assert done.returncode == 2
    assert "--live: is for a lab on this machine, and cannot go with --machines" in done.stderr


def test_listening_is_for_this_machine_alone():
    with listening_socket(None) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"
