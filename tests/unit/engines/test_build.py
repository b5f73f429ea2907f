"""A lab that cannot be built leaves nothing, whatever its agent says; a small agent of our own plays one."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from testbed.base.errors import LabError, VerificationError
from testbed.base.messages import CpuShare, Facts
from testbed.base.model import Violation
from testbed.engines.lab.control import build
from testbed.engines.lab.control.client import LabClient
from testbed.engines.lab.control.json_lines import encode
from testbed.planning import make_plan
from testbed.scenario import parse_scenario

_FACTS = Facts(
    "userspace", "Open vSwitch 3", True, (("s1", "s2"), ("s3", "s4")), None, {"h1": 7}, {},
    CpuShare(0.2, 2000, 10000), 50.0, {"links": 0.25}, "6.1", "/run/lab", "eth0",
)  # fmt: skip
_PLAN = make_plan(parse_scenario("topology: {kind: ring, switches: 4}", "test.yaml"))


@dataclass
class _Namespaces:
    """What `start_namespaces` gives, with nothing in it but a socket."""

    socket: Path
    init: int = 0
    ended: list[str] = field(default_factory=list)

    def end(self) -> None:
        self.ended.append("ended")


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bytes], _Namespaces]]:
    """Play an agent that takes the plan, answers the next request with the line given, and hangs up."""
    threads = []

    def play(answer: bytes) -> _Namespaces:
        listener = socket.socket(socket.AF_UNIX)
        namespaces = _Namespaces(tmp_path / "agent.sock")
        listener.bind(str(namespaces.socket))
        listener.listen()

        def serve() -> None:
            with listener:
                connection, _ = listener.accept()
            with connection, connection.makefile("rb") as requests:
                while b'"op": "write"' in requests.readline():
                    connection.sendall(b'{"result": "/run/lab/plan.json"}\n')
                connection.sendall(answer)

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        monkeypatch.setattr(build, "start_namespaces", lambda *, keep, name, meanwhile: namespaces)
        return namespaces

    yield play
    for thread in threads:
        thread.join()


@pytest.fixture
def labs(monkeypatch: pytest.MonkeyPatch) -> list[LabClient]:
    """Every lab that is talked to."""
    seen: list[LabClient] = []

    def made(namespaces: _Namespaces) -> LabClient:
        seen.append(LabClient(namespaces))  # type: ignore[arg-type]
        return seen[-1]

    monkeypatch.setattr(build, "LabClient", made)
    return seen


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b'{"progress": "switches"}\n{"error": "ovs-vsctl did not end in 120 s"}\n', "ovs-vsctl did not end in 120 s"),
        (b"", "the lab ended while it was in use"),
    ],
)
def test_a_lab_that_is_not_built_is_ended_and_hung_up(agent, labs, answer, sentence):
    namespaces = agent(answer)
    with pytest.raises(LabError, match=f"^{sentence}$"):
        build.build_lab(_PLAN)
    assert namespaces.ended == ["ended"]
    (lab,) = labs
    assert lab._socket.fileno() == -1


def test_a_lab_that_does_not_answer_is_ended(tmp_path, monkeypatch):
    namespaces = _Namespaces(tmp_path / "nothing.sock", init=12)
    monkeypatch.setattr(build, "start_namespaces", lambda *, keep, name, meanwhile: namespaces)
    with pytest.raises(LabError, match=r"^the lab \(process 12\) does not answer: No such file or directory$"):
        build.build_lab(_PLAN)
    assert namespaces.ended == ["ended"]


def test_a_lab_that_is_built_stands(agent, labs):
    namespaces = agent(encode({"result": _FACTS}).encode() + b"\n")
    with build.build_lab(_PLAN) as lab:
        assert lab.facts == _FACTS
        assert namespaces.ended == []
    assert namespaces.ended == ["ended"]


def test_what_the_agent_is_told_is_made_while_it_comes_up(agent, monkeypatch):
    namespaces, order_of, done = agent(encode({"result": _FACTS}).encode() + b"\n"), build.build_order, []

    def started(*, keep, name, meanwhile):
        done.append("begun")
        meanwhile()
        return namespaces

    def made(plan, *, model):
        done.append("made")
        return order_of(plan, model=model)

    monkeypatch.setattr(build, "start_namespaces", started)
    monkeypatch.setattr(build, "build_order", made)
    with build.build_lab(_PLAN):
        assert done == ["begun", "made"]


def test_nothing_is_begun_for_a_plan_without_proof(monkeypatch):
    monkeypatch.setattr(build, "start_namespaces", lambda **given: pytest.fail("it was begun"))
    unproved = replace(_PLAN, violations=(Violation("loops", "s1 sends to itself"),))
    with pytest.raises(VerificationError):
        build.build_lab(unproved)
