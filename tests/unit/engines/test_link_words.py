"""Rates, delays and losses of links as they are typed, what tc is told of them, and what makes figures void."""

from __future__ import annotations

import pytest

from testbed.base.messages import Deviation, LinkChange, LinkState
from testbed.engines.lab.hosts.shaping import Shaping, shaping_problems
from testbed.engines.ovs.check_tables import changed_links
from testbed.engines.ovs.netem import Netem
from testbed.planning.check_loads import too_slow
from testbed.scenario.workloads.link_settings import read_delay, read_loss, read_rate
from tests.fabrics import plan_of


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (read_rate, "100M", 1e8), (read_rate, "2.5g", 2.5e9), (read_rate, "100Mbit", 1e8),
        (read_rate, "1 Gbit/s", 1e9), (read_rate, "5e5 bit/s", 5e5),
        (read_delay, "20us", 20e-6), (read_delay, "1.5 ms", 1.5e-3), (read_delay, "0s", 0.0), (read_delay, "5µs", 5e-6),
        (read_loss, "1%", 0.01), (read_loss, "0.25 %", 0.0025), (read_loss, "100%", 1.0),
    ],
)  # fmt: skip
def test_words_of_netem_are_read(read, text, value):
    assert read(text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read_rate, "100"), (read_rate, "0M"), (read_rate, "-5M"), (read_rate, "1.2.3M"), (read_rate, "100MB"),
        (read_rate, "99999T"), (read_delay, "20"), (read_delay, "-1ms"), (read_delay, "11s"), (read_delay, "1 h"),
        (read_loss, "0.01"), (read_loss, "101%"), (read_loss, "-1%"), (read_loss, "%"),
    ],
)  # fmt: skip
def test_others_are_refused(read, text):
    with pytest.raises(ValueError, match="such as"):
        read(text)


def test_what_is_not_said_stays_as_it_is():
    slow = LinkState().apply_change(LinkChange(3, rate=1e8))
    lossy = slow.apply_change(LinkChange(3, loss=0.01))
    assert lossy == LinkState(rate=1e8, loss=0.01)
    assert lossy.apply_change(LinkChange(3, delay=1e-3, reset=True)) == LinkState(delay=1e-3)
    assert LinkState(1e8, up=False).apply_change(LinkChange(3, reset=True)) == LinkState(up=False)


_SHOWN = """\
qdisc netem 2: root refcnt 2 limit 1000000 delay 2ms loss 1%
qdisc htb 1: parent 2:1 r2q 10 default 0x1 direct_packets_stat 0 ver 3.17 direct_qlen 1000
qdisc pfifo 10: parent 1:1 limit 100p
class htb 1:1 root leaf 10: prio 0 quantum 1542 rate 10Mbit overhead 24 ceil 10100Kbit linklayer ethernet mpu 84b
"""
_PLAIN = Shaping(1e7, 100)
_NETEM = Shaping(1e7, 100, netem=Netem(2e-3, 0.01))


def test_netem_stands_before_the_shaper():
    first, second, *_ = _NETEM.commands("s1-eth1").splitlines()
    assert first == "qdisc replace dev s1-eth1 root handle 2: netem limit 1000000 delay 2000.000us loss 1%"
    assert second == "qdisc replace dev s1-eth1 parent 2:1 handle 1: htb default 1"


def test_a_port_is_changed_as_little_as_possible():
    """Where netem comes or goes its queue is made anew; else it stays."""
    slower = Shaping(1e6, 100)
    assert slower.instead_of(_PLAIN, "a") == slower.change("a")
    other = Shaping(1e6, 100, netem=Netem(0.0, 0.5))
    assert other.instead_of(_NETEM, "a").splitlines()[0] == (
        "qdisc replace dev a root handle 2: netem limit 1000000 loss 50%"
    )
    assert other.instead_of(_NETEM, "a").endswith(other.change("a"))
    assert _PLAIN.instead_of(_NETEM, "a") == "qdisc del dev a root\n" + _PLAIN.commands("a")
    # The first line fails where there is no netem, and then nothing has changed.
    assert _NETEM.instead_of(_PLAIN, "a") == _NETEM.commands("a")


def test_netem_is_read_back():
    assert shaping_problems({"a": _NETEM}, _SHOWN) == []
    assert shaping_problems({"a": _PLAIN}, _SHOWN) == [
        "a: asked for a delay of 0 s, the kernel has 0.002 s", "a: asked for a loss of 0, the kernel has 0.01",
    ]  # fmt: skip
    plain = "".join(_SHOWN.splitlines(keepends=True)[1:]).replace("parent 2:1", "root refcnt 2")
    assert shaping_problems({"a": _NETEM}, plain) == [
        "a: asked for a delay of 0.002 s, the kernel has 0 s", "a: asked for a loss of 0.01, the kernel has 0",
    ]  # fmt: skip


def test_links_that_somebody_changed_make_figures_void():
    plan = plan_of("mesh", sizes=[2, 2])
    states = {0: LinkState(1e8, loss=0.01), 1: LinkState(up=False)}
    said = [
        Deviation(True, "s1-s2 was changed from outside the scenario and is not as planned: rate 100 Mbit/s, loss 1 %"),
        Deviation(True, "s1-s3 was changed from outside the scenario and is not as planned: down"),
    ]
    assert changed_links(plan, states, controlled=False) == said
    assert changed_links(plan, states, controlled=True) == said[:1]  # it switches links off itself
    assert changed_links(plan, {}, controlled=False) == []


def test_a_rate_that_a_lab_cannot_have_is_refused():
    assert too_slow(1e7, 100) == ""
    assert too_slow(1e6, 100) == (
        "a lab link would run at 10 kbit/s; below 100 kbit/s nothing can be measured, so use 10 Mbit/s or more"
    )
