"""A fabric over several machines, without machines: how it is cut, what parts are asked, and what they say together."""

from __future__ import annotations

import dataclasses
import io
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from typer.testing import CliRunner

from testbed.base import vlan_networks
from testbed.base.errors import CapabilityError, InputError, LabError
from testbed.base.messages import (
    Count,
    CpuShare,
    Disturbance,
    Disturbed,
    Facts,
    FastPathEntries,
    FrameCounts,
    LinkChange,
    LinkReadings,
    LinkState,
    LoadRequest,
    Observation,
    Output,
    PairReadings,
    Process,
    Snapshot,
    Status,
)
from testbed.engines.lab.control import operations as ask
from testbed.engines.lab.control.build import build_order
from testbed.engines.lab.counters.rtnetlink import FIGURES
from testbed.engines.lab.hosts import probe_frames
from testbed.engines.machines import worker
from testbed.engines.machines.build import what_shares_miss
from testbed.engines.machines.clock_offsets import Clock, clocks, interpolate_clocks
from testbed.engines.machines.fabric_client import FabricMachine, Machines, find_machines
from testbed.engines.machines.merge_observations import merge_disturbed, merge_observations, merge_snapshots
from testbed.engines.machines.merge_telemetry import merge_records
from testbed.engines.machines.partition_fabric import divide, needed_rates
from testbed.experiments.run.loads.context import LoadResult
from testbed.experiments.run.machines import problems_of
from testbed.fabric.topologies.partition import cut
from testbed.planning import make_plan
from testbed.ui.cli import lab_commands, plan_commands, regulate_command  # noqa: F401 - a program of one command would take no name
from testbed.ui.cli.app import app
from tests.fabrics import plan_of, scenario_of

_MACHINES = ("a", "b")
_RING = "topology: {kind: ring, switches: 4}\n"


@pytest.fixture(scope="module")
def plan():
    return plan_of("torus", sizes=[4, 4])


@pytest.fixture(scope="module")
def divided(plan):
    order = build_order(plan)
    part_of = cut(plan.topology, 2)
    parts, cuts = divide(order, part_of.tolist(), _MACHINES)
    return order, part_of, parts, cuts


@pytest.mark.parametrize(
    ("kind", "parameters", "parts", "most"),
    [
        ("torus", {"sizes": [4, 4]}, 2, 8), ("torus", {"sizes": [8, 8]}, 4, 32), ("mesh", {"sizes": [4, 4]}, 2, 4),
        ("ring", {"switches": 9}, 3, 3), ("torus", {"sizes": [4, 4]}, 1, 0),
    ],
)  # fmt: skip
def test_parts_are_even_and_few_links_are_cut(kind, parameters, parts, most):
    topology = plan_of(kind, **parameters).topology
    part_of = cut(topology, parts)
    sizes = np.bincount(part_of, minlength=parts)
    assert sizes.max() - sizes.min() <= max(1, 0.05 * topology.switch_count)
    assert (part_of[topology.links[:, 0]] != part_of[topology.links[:, 1]]).sum() <= most
    assert part_of[0] == 0
    assert (cut(topology, parts) == part_of).all()


def test_more_parts_than_switches_and_no_metis_are_told(plan, monkeypatch):
    with pytest.raises(InputError, match=r"machines: names 17, but the fabric has 16 switches"):
        cut(plan.topology, 17)
    monkeypatch.setitem(__import__("sys").modules, "pymetis", None)
    with pytest.raises(CapabilityError, match=r"by METIS, which is not installed: .*pip install -e '\.\[cluster\]'"):
        cut(plan.topology, 2)


def test_every_switch_host_and_link_is_built_once(divided):
    order, part_of, parts, cuts = divided
    for what, count in (("switches", 16), ("hosts", 16), ("channels", 64)):
        assert sorted(number for part in parts for number in getattr(part, what)) == list(range(count))
    assert len(cuts) == int(sum(len(part.order.far) for part in parts) / 2) == 8
    ends = {end for link in order.links for end in link.ends}
    assert {end for part in parts for its in part.order.ends for end in its} == ends
    for number, part in enumerate(parts):
        assert [order.switches[switch] for switch in part.switches] == list(part.order.switches)
        assert {int(part_of[switch]) for switch in part.switches} == {number}
        assert part.order.rules == {name: order.rules[name] for name in part.order.switches}
        assert {*part.order.hosts, *part.order.others} == set(order.hosts)
        # A channel's sending port is that of the whole.
        ports = [end for its in part.order.ends for end in its]
        assert ports == [order.links[channel // 2].ends[channel % 2] for channel in part.channels]
    # Either end of a link that is cut leads into the tunnel of the other.
    first, second = ({far.tunnel for far in part.order.far} for part in parts)
    assert first == second == {one.tunnel for one in cuts}


def test_speeds_keep_to_their_links(plan):
    order = dataclasses.replace(build_order(plan), speeds={link: (link + 1) / 100 for link in range(32)})
    parts, _ = divide(order, cut(plan.topology, 2).tolist(), _MACHINES)
    for part in parts:
        assert part.order.speeds == {here: (link + 1) / 100 for here, link in enumerate(part.links)}


def test_members_of_a_bundle_that_is_cut_have_a_tunnel_each():
    links = "[a, b], [a, b], [b, c], [b, c], [b, c], [c, d], [c, d], [d, a], [d, a], [d, a]"
    names = "switches: [a, b, c, d]"
    plan = make_plan(scenario_of(f"topology: {{kind: graph, {names}, links: [{links}]}}\nlinks: {{aggregate: true}}"))
    assert plan.bundles is not None
    part_of = cut(plan.wiring, 2)  # where all members count; of the bundles alone, b and c could be parted as well
    parts, cuts = divide(build_order(plan), part_of.tolist(), _MACHINES)
    assert [plan.wiring.channel_name(2 * one.link) for one in cuts] == ["s1→s2", "s1→s2#1", "s3→s4", "s3→s4#1"]
    assert len({one.tunnel for one in cuts}) == 4
    assert [len({(far.switch, far.port) for far in part.order.far}) for part in parts] == [4, 4]
    assert [sum(len(lines) for lines in part.order.groups.values()) for part in parts] == [4, 4]


def test_tunnels_need_more_than_the_links_they_carry(divided):
    order, _, _, cuts = divided
    # A full frame with its tag is 1542 bytes on a wire of the fabric, and 1592 in a tunnel.
    assert needed_rates(order, cuts) == {(0, 1): pytest.approx(8 * order.link_rate * 1592 / 1542)}


def _snapshot(part, scale: int, idle: int = 90, time: float = 1.0) -> Snapshot:
    return Snapshot(
        time, time, tuple(Count(scale * c, c) for c in part.channels), tuple(Count(scale * h, h) for h in part.hosts),
        idle, 1, 100, 7, {"switches": (0.5,), "agent": (0.1,), "programs": (0.2,)},
    )  # fmt: skip


def test_channels_are_counted_when_their_own_machine_did(divided):
    _, _, parts, _ = divided
    # One machine says when it counted, the other counts when it reads its clock.
    said = [_snapshot(part, 1) for part in parts]
    said[0] = dataclasses.replace(said[0], counted=(0.75,) * len(parts[0].channels))
    found = merge_snapshots(parts, said, 0)
    own = set(parts[0].channels)
    assert found.counted == tuple(0.75 if channel in own else 1.0 for channel in range(64))


def _observation(part, number: int) -> Observation:
    before = _snapshot(part, 1, idle=0)
    after = dataclasses.replace(_snapshot(part, 2, time=3.0), total=200, idle=50 if number else 80)
    return Observation({f"p{number}": Output(0, "", "")}, before, after, (), 1.0, None, 2.0 + number)


def test_counters_come_back_in_the_order_of_the_whole(divided):
    _, _, parts, _ = divided
    said = [
        FrameCounts(
            10, {"in a switch": 1, "between machines": 100 if part.machine == "a" else -97}, 2,
            part.channels, part.hosts, part.switches,
        )
        for part in parts
    ]  # fmt: skip
    found = ask.CountFrames().merge(parts, said)
    assert found.channels == tuple(range(64))
    assert found.to_hosts == found.admitted == tuple(range(16))
    # One machine sent 100 more than it received, the other received 97 more than it sent.
    assert found.lost == {"in a switch": 2, "between machines": 3}
    seen = merge_observations(
        parts, [_observation(part, n) for n, part in enumerate(parts)], [Clock(0.0, 0.0), Clock(-7.0, 0.25)]
    )
    assert [count.frames for count in seen.after.channels] == list(range(64))
    assert [count.bytes for count in seen.after.hosts] == [2 * host for host in range(16)]
    assert seen.outputs.keys() == {"p0", "p1"}
    # The machine with less time left, which was idle for 50 of 100 ticks.
    assert seen.after.idle == 50
    assert seen.after.processes["switches"] == (0.5, 0.5)
    assert seen.seconds == 3.0
    # A rate is over the time for which its machine has counted, though the other one counted for longer.
    loads = [_observation(part, number) for number, part in enumerate(parts)]
    loads[0] = dataclasses.replace(loads[0], after=dataclasses.replace(loads[0].after, time=5.0))
    both = merge_observations(parts, loads, [Clock(0.0, 0.0)] * 2)
    result = LoadResult(both.outputs, both.before, both.after, both.seconds)
    for part, seconds in zip(parts, (4.0, 2.0), strict=True):
        for channel in part.channels:
            assert result.wire_rate(channel) == pytest.approx(8 * channel / seconds)
    # The other machine's last program started at 1 s by a clock that is 7 s behind.
    assert (seen.start, seen.clock_error) == (8.0, 0.25)


def test_clocks_are_known_by_the_quickest_answer():
    """A machine's answer is true at some moment of a round trip, and so is the difference of two machines'."""
    waits = iter([0.02, 0.001, *[0.02] * 6, 0.03, 0.004, *[0.03] * 6])

    def tell(ahead: float) -> float:
        wait = next(waits)
        time.sleep(wait)  # on the way there, and nothing on the way back: the worst that can be
        return time.monotonic() + ahead

    first, second = clocks([lambda: tell(0.0), lambda: tell(5000.0)])
    assert first == Clock(0.0, 0.0)
    assert 0.0025 <= second.error < 0.015
    assert second.ahead == pytest.approx(5000.0, abs=second.error)
    # Clocks that drift apart while a load runs are known the worse.
    assert interpolate_clocks([Clock(5.0, 0.001)], [Clock(5.25, 0.002)]) == [Clock(5.125, 0.127)]


def _record(part, ahead: float, times: list[float], *, pairs: bool = True) -> bytes:
    """What a part records of ports that send 1000 bytes a second times the number of their row in the whole."""
    rows = [*part.hosts, *(16 + channel for channel in part.channels)]
    ports = np.zeros((len(times), len(rows), len(FIGURES)), dtype=np.int64)
    ports[..., FIGURES.index("tx_bytes")] = np.outer(np.array(times) * 1000, rows)
    ports[..., FIGURES.index("queue_frames")] = (np.array(times) * 10).astype(int)[:, None]
    matrix = np.zeros((len(times), 2, 16, 16), dtype=np.int64)
    matrix[:, 0, part.hosts, 0] = (np.array(times) * 500).astype(int)[:, None]
    own, content = np.array(times) + ahead, io.BytesIO()
    arrays: dict[str, Any] = {
        "names": np.array([f"{part.machine}-{row}" for row in rows]), "rates": np.array(rows, dtype=float),
        "time": own, "ports": ports, "ticks": np.outer(own, [1, 2, 3]).astype(int), "coarse_time": own,
        "hosts": ports[:, : len(part.hosts)], "departures": np.array([[0, 7, 60], [len(rows) - 1, 9, 60]]),
        "looks": np.array([[0, 7, 1]]), **({"pairs": matrix} if pairs else {}),
    }  # fmt: skip
    np.savez(content, **arrays)
    return content.getvalue()


def test_records_of_machines_go_together_by_the_first_ones_clock(divided):
    _, _, parts, _ = divided
    times = [[0.0, 1.0, 2.0, 3.0], [0.5, 1.25, 2.25, 2.75]]
    known = [Clock(0.0, 0.0), Clock(5000.0, 0.001)]
    contents = [_record(part, clock.ahead, its) for part, clock, its in zip(parts, known, times, strict=True)]
    for busiest in (0, 1):
        with np.load(io.BytesIO(merge_records(contents, parts, known, busiest))) as found:
            assert found["time"].tolist() == times[busiest]
            assert found["rates"].tolist() == list(range(80))
            assert sorted(found["departures"][:, 0].tolist()) == sorted(
                row for part in parts for row in (part.hosts[0], 16 + part.channels[-1])
            )
            sent = found["ports"][..., FIGURES.index("tx_bytes")]
            mine, other = ([*parts[n].hosts] for n in (busiest, 1 - busiest))
            # What each machine has counted itself, and what another one had counted at that time by even growth; beyond
            # its readings nothing grows.
            there = np.clip(times[busiest], times[1 - busiest][0], times[1 - busiest][-1])
            assert (sent[:, mine] == np.outer(np.array(times[busiest]) * 1000, mine)).all()
            assert (sent[:, other] == np.outer(there * 1000, other)).all()
            # A queue is no sum: it is the one of the nearer reading.
            waiting = found["ports"][..., FIGURES.index("queue_frames")]
            assert {*waiting[:, other[0]].tolist()} <= {int(10 * at) for at in times[1 - busiest]}
            assert found["pairs"][-1, 0, :, 0].tolist() == [
                int(500 * (times[busiest][-1] if host in mine else there[-1])) for host in range(16)
            ]
    contents[1] = _record(parts[1], 5000.0, times[1], pairs=False)
    assert "pairs" not in np.load(io.BytesIO(merge_records(contents, parts, known, 0)))


def test_links_that_are_cut_are_up_where_both_ends_are(divided):
    _, _, parts, cuts = divided
    link = cuts[0].link
    said = [{part.links.index(link): LinkState(up=part.machine == "a")} for part in parts]
    assert ask.GetLinks().merge(parts, said) == {link: LinkState(up=False)}
    status = [Status("idle", len(part.hosts), len(part.switches), 0, "userspace", None, 1e7) for part in parts]
    assert ask.GetStatus().merge(parts, status) == Status("idle", 16, 16, 32, "userspace", None, 1e7)


def _facts(part, datapath: str) -> Facts:
    holders = {host.name: 7 for host in part.order.hosts}
    return Facts(
        datapath, "3.1", True, (("s",),), None, holders, {}, None, 10.0, {"links": 1.0}, "6", "/run/lab", "eth0"
    )


def test_machines_with_different_datapaths_are_refused(divided):
    _, _, parts, _ = divided
    same = ask.GetFacts().merge(parts, [_facts(part, "userspace") for part in parts])
    assert len(same.holders) == 16
    assert len(same.switch_daemons) == 2
    with pytest.raises(LabError, match=r"a has the kernel one, b has the userspace one; set lab.datapath: userspace"):
        ask.GetFacts().merge(parts, [_facts(parts[0], "kernel"), _facts(parts[1], "userspace")])


def test_dumps_and_traces_come_from_the_switchs_machine(divided):
    _, _, parts, _ = divided
    dumps = [{name: [name] for name in part.order.switches} for part in parts]
    assert ask.DumpFlows().merge(parts, dumps) == {f"s{n}": [f"s{n}"] for n in range(1, 17)}
    cuts = [FastPathEntries({name: (name,) for name in part.order.switches}, {}, 3) for part in parts]
    assert len(ask.DumpShortCuts().merge(parts, cuts).entries) == 16
    wanted = tuple((f"s{n}", f"in_port={n}") for n in (16, 1, 9, 2, 16))
    asked: Any = ask.Trace(wanted).for_parts(parts)
    assert sorted(frame for one in asked for frame in one.frames) == sorted(wanted)
    said = [[flow for _, flow in one.frames] for one in asked]
    assert ask.Trace(wanted).merge(parts, said) == [flow for _, flow in wanted]


def test_hosts_of_all_machines_teach_from_their_own_addresses(divided, monkeypatch):
    _, _, parts, _ = divided
    taught: dict[str, list[Any]] = {}
    monkeypatch.setattr(
        probe_frames, "_teach_one", lambda host, pid, vlans, networks, gap: taught.update({host.name: networks})
    )
    for part in parts:
        holders = {host.name: 7 for host in part.order.hosts}
        probe_frames.teach(part.order.hosts, part.order.others, holders, [101, 102], 1e9, datagrams=True)
    assert taught == {f"h{n}": [vlan_networks.vlan_address(place, n - 1, 16) for place in (0, 1)] for n in range(1, 17)}
    assert ask.Learn((1,), datagrams=False).merge(parts, ["raw", "raw"]) == "raw"


def test_programs_of_a_load_run_where_their_host_is(divided):
    _, _, parts, _ = divided
    processes = tuple(Process(f"p{n}", f"h{n}", ("true",)) for n in range(1, 17))
    shares: Any = ask.RunLoad(
        LoadRequest((*processes, Process("beside", None, ("true",))), 9.0, telemetry=0.1, gate="g")
    ).for_parts(parts)
    for part, one in zip(parts, shares, strict=True):
        mine = [process.host for process in one.load.processes if process.host is not None]
        assert mine == [host.name for host in part.order.hosts]
        assert (one.load.gate, one.load.telemetry, one.load.limit) == ("g", 0.1, 9.0)
    assert shares[0].load.processes[-1].id == "beside"
    # Servers wait for clients, wherever these are, but for none where there are none.
    server, client = Process("server", processes[0].host, ("true",), server_port=7), processes[-1]
    for run, elsewhere in (((server, client), [True, False]), ((server,), [False, False])):
        shares = ask.RunLoad(LoadRequest(run, 9.0, gate="g")).for_parts(parts)
        assert [one.load.clients_elsewhere for one in shares] == elsewhere
    # What starts programs in hosts runs on their machine; a folder is shown to hosts where they are.
    far = parts[1].order.hosts[0].name
    near = Process("near", None, ("true",), beside=far)
    shares = ask.RunLoad(LoadRequest((near,), 9.0, gate="g")).for_parts(parts)
    assert [[process.id for process in one.load.processes] for one in shares] == [[], ["near"]]
    shown: Any = [ask.ShowFolder("/jobs", hosts).for_parts(parts) for hosts in ((far,), None)]
    assert [one.hosts for one in shown[0]] == [(), (far,)]
    everybody = [tuple(host.name for host in part.order.hosts) for part in parts]
    assert [one.hosts for one in shown[1]] == everybody
    with pytest.raises(LabError, match="a fabric over several machines cannot carry out: storm"):
        ask.WatchStorm(1.0, 1.0).for_parts(parts)


def test_what_dies_does_so_on_every_machine_with_an_end_of_it(divided):
    order, _, parts, cuts = divided
    cut_link, whole = cuts[0].link, parts[1].links[0]
    first, second = cuts[0].parts
    events = (
        Disturbance(False, channels=(2 * cut_link,), at=1.0),  # one end loses its power
        Disturbance(True, channels=(2 * cut_link, 2 * cut_link + 1), at=2.0),
        Disturbance(False, channels=(2 * whole + 1,), hosts=(parts[1].hosts[2],), at=3.0),
        Disturbance(False, switches=(parts[0].switches[3],), at=4.0),
        Disturbance(True, links=(LinkChange(cut_link, 1e8), LinkChange(whole, loss=0.5)), at=5.0),
    )
    asked: Any = ask.RunLoad(LoadRequest((), 9.0, timeline=events, gate="g")).for_parts(parts)
    lines = [one.load.timeline for one in asked]
    assert [[event.at for event in line] for line in lines] == [[1.0, 2.0, 3.0, 4.0, 5.0]] * 2

    def ports(number: int, event: int) -> list[tuple[str, int]]:
        """Switch and port of the ends that go down or up."""
        ends = [end for its in parts[number].order.ends for end in its]
        return [ends[channel] for channel in lines[number][event].channels]

    links = [part.links.index(cut_link) for part in parts]
    ends = order.links[cut_link].ends
    assert (ports(first, 0), ports(second, 0)) == ([ends[0]], [])
    assert (lines[first][0].far, lines[second][0].far) == ((), (links[second],))
    assert (ports(first, 1), ports(second, 1)) == ([ends[0]], [ends[1]])
    assert [line[1].far for line in lines] == [(links[0],), (links[1],)]
    assert (ports(0, 2), ports(1, 2), lines[1][2].hosts) == ([], [order.links[whole].ends[1]], (2,))
    assert [line[3].switches for line in lines] == [(3,), ()]
    assert lines[0][4].links == (LinkChange(links[0], 1e8),)
    assert lines[1][4].links == (LinkChange(links[1], 1e8), LinkChange(0, loss=0.5))
    # An event took from the first to the last of what was to do, on machines that had something to do.
    known = [Clock(0.0, 0.0), Clock(5000.0, 0.25)]
    times = [Disturbed(10.0, 10.5), Disturbed(5010.25, 5011.0, "no")]
    assert merge_disturbed([line[1] for line in lines], times, known) == Disturbed(10.0, 11.0, "no")
    assert merge_disturbed([line[2] for line in lines], times, known) == Disturbed(10.25, 11.0, "no")
    said = [
        dataclasses.replace(_observation(part, number), disturbed=(times[number],) * (5 - number))
        for number, part in enumerate(parts)
    ]
    seen = merge_observations(parts, said, known, lines)
    # The last one was carried out on one machine only.
    assert [done.began for done in seen.disturbed] == [10.0, 10.0, 10.25, 10.0]
    assert {seen.ahead[host.name] for host in parts[1].order.hosts} == {5000.0}


def test_one_machine_has_the_controller_and_numbers_are_shared(plan):
    order = dataclasses.replace(build_order(plan), controller="segment_manager")
    parts, _ = divide(order, cut(plan.topology, 2).tolist(), _MACHINES)
    assert [part.order.controller_here for part in parts] == [True, False]
    assert {part.order.controller_at for part in parts} == {"169.254.64.1"}
    assert {part.order.everywhere for part in parts} == {order.switches}


def test_shaping_that_is_wrong_is_told_with_its_machine(divided):
    _, _, parts, _ = divided
    assert ask.CheckShaping().merge(parts, [[], ["s1-eth1 has none"]]) == ["on b: s1-eth1 has none"]


def test_another_engine_is_refused():
    (problem,) = problems_of(make_plan(scenario_of(f"engine: simulate\n{_RING}")))
    assert problem.key == "engine"
    assert problem.sentence == (
        "is simulate, and over several machines there is Open vSwitch only; run it on one machine, without machines"
    )
    assert problems_of(make_plan(scenario_of(_RING))) == []
    # The table in the documentation says so.
    text = (Path(__file__).parents[3] / "docs" / "scale.md").read_text()
    assert "| `engine` | `ovs` |" in text.splitlines()


def test_hosts_that_tag_are_refused_over_machines():
    text = f"{_RING}routing: {{kind: stp}}\nassignment: {{kind: host_tagged}}\n"
    (problem,) = problems_of(make_plan(scenario_of(text)))
    assert problem.key == "assignment.kind"
    assert "hosts have no interfaces in VLANs; use fixed" in problem.sentence


class _Answering:
    """Stands for machines with some processors."""

    def __init__(self, *processors: int) -> None:
        self.processors = processors
        self.machines = [FabricMachine(name, "", "") for name in _MACHINES]

    def call(self, number: int, function: Any) -> int:
        assert function is worker.processors
        return self.processors[number]


@pytest.mark.parametrize(
    ("share", "processors", "names"),
    [("0.1", (2, 2), []), ("0.1", (2, 1), ["b"]), ("auto", (1, 1), ["a", "b"]), ("none", (), [])],
)
def test_each_machine_leaves_its_switches_half_its_processors(share, processors, names):
    text = f"topology: {{kind: torus, sizes: [4, 4]}}\nlab: {{dilation: 10, cpu_share: {share}}}"
    plan = make_plan(scenario_of(text))
    found = what_shares_miss(cast(Machines, _Answering(*processors)), plan)
    remedy = "lab.dilation 16 or more" if share == "auto" else "0.0625 or less"
    assert found == [
        f"machine {name}: {plan.scenario.source}: lab.cpu_share: 8 hosts with 0.1 of a processor each would take 0.8 "
        f"of this machine's 1, and half of them must be left for the switches; use {remedy}"
        for name in names
    ]


def test_a_machine_without_hosts_has_no_shares(divided):
    _, _, parts, _ = divided
    share = CpuShare(0.1, 1000, 10000)
    said = [
        dataclasses.replace(_facts(part, "userspace"), cpu_share=its, most_share=most)
        for part, its, most in zip(parts, (None, share), (1.0, 0.125), strict=True)
    ]
    whole = ask.GetFacts().merge(parts, said)
    assert (whole.cpu_share, whole.most_share) == (share, 0.125)
    assert ask.SetRates(1.0, 1.0, 0.1, 10.0).merge(parts, [None, share]) == share
    assert ask.SetRates(1.0, 1.0, None, 10.0).merge(parts, [None, None]) is None


class _Workers:
    """Stands for a client of Dask, which knows workers by name."""

    def __init__(self, **addresses: str) -> None:
        self.addresses = addresses

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        return {"workers": {address: {"name": name} for name, address in self.addresses.items()}}


@pytest.mark.parametrize(
    ("names", "sentences"),
    [
        (["a"], ["machines: names one machine; a fabric on one is run there without this option"]),
        (
            ["a", "a", "boat"],
            [
                "machines: a is named twice",
                'machines: the scheduler has no worker named boat. Did you mean "goat"? Known: a, b, goat;',
            ],
        ),
        (["a", "b"], ["machines: a and b are both at 10.0.0.1; parts of a fabric need machines of their own"]),
    ],
)
def test_names_that_are_not_two_machines_are_told(names, sentences):
    with pytest.raises(InputError) as caught:
        find_machines(_Workers(a="tcp://10.0.0.1:1", b="tcp://10.0.0.1:2", goat="tcp://10.0.0.2:1"), names)
    assert [sentence in str(caught.value) for sentence in sentences] == [True] * len(sentences)


def test_different_datapaths_are_told_with_their_machines(divided):
    _, _, parts, _ = divided
    said = [Facts("kernel", "3.1", False, (), None, {}, {}, None, 1.0, {}, "6.1", "/run/lab", "eth0")]
    said.append(dataclasses.replace(said[0], datapath="userspace"))
    with pytest.raises(LabError, match=r"a has the kernel one, b has the userspace one; set lab\.datapath: userspace"):
        ask.GetFacts().merge(parts, said)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--machines", "a,b"],
            "--machines: names workers of a Dask scheduler; give its address, such as --cluster tls://",
        ),
        (["--machines", "a,b", "--cluster", "local:2"], "--machines: names workers of a Dask scheduler"),
        (["--cluster", "tcp://127.0.0.1:1"], "--cluster: is for --machines; name the machines, such as --machines a,b"),
        (["--insecure"], "--insecure: is for --machines"),
    ],
)
def test_options_that_need_each_other_are_told(words, sentence, tmp_path):
    with pytest.raises(InputError) as caught:
        CliRunner().invoke(
            app, ["run", "torus4x4", *words, "--results", str(tmp_path / "results")], catch_exceptions=False
        )
    assert sentence in str(caught.value)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--every", "1", "--machines", "a,b"], "--every: compares one-way times, which the clocks of two machines do"),
        (["--running", "--insecure"], "--running: is for a lab that runs on this machine; leave out --machines, --clu"),
        (["--loop", "--cluster", "tcp://a:8786"], "--cluster: is for --machines; name the machines"),
    ],
)
def test_what_of_regulation_is_for_one_machine_is_told(words, sentence):
    with pytest.raises(InputError) as caught:
        CliRunner().invoke(app, ["regulate", "torus4x4", *words], catch_exceptions=False)
    assert sentence in str(caught.value)


def test_speeds_and_readings_are_those_of_the_whole(divided):
    _, _, parts, cuts = divided
    speeds = {cuts[0].link: 0.1, parts[1].links[0]: 0.01}
    asked: Any = ask.SetSpeeds(speeds).for_parts(parts)
    shares = zip(parts, asked, strict=True)
    found = [{part.links[here]: speed for here, speed in one.speeds.items()} for part, one in shares]
    assert found == [{cuts[0].link: 0.1}, speeds]
    said = []
    for number, part in enumerate(parts):  # what each direction of the whole has carried is its number
        ports = [*part.channels, *(64 + host for host in part.hosts)]
        both = [*ports, *(80 + host for host in part.hosts)]
        said.append(LinkReadings(
            100.0 + number, 10.0, tuple(both), tuple(2 * one for one in both), tuple(map(float, ports)), tuple(ports),
            tuple(3 * one for one in ports),
        ))  # fmt: skip
    whole = ask.ReadLinks().merge(parts, said)
    assert whole.bytes == tuple(range(96))
    assert whole.frames == tuple(range(0, 192, 2))
    assert (whole.rates, whole.waiting) == (tuple(map(float, range(80))), tuple(range(80)))
    assert whole.drops == tuple(range(0, 240, 3))
    assert whole.time == 100.0  # of the first machine, as always
    pairs = ask.ReadPairs().merge(parts, [PairReadings(1.0, ((9, 0, 7),)), PairReadings(5001.0, ((0, 9, 5),), "no")])
    assert pairs == PairReadings(1.0, ((0, 9, 5), (9, 0, 7)), "on b: no")
