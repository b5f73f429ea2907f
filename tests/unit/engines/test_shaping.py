from testbed.engines.lab.hosts.shaping import HEAD_DROP, Shaping, read_back_commands, shaping_problems

_SHOWN = """\
qdisc htb 1: root refcnt 3 r2q 10 default 0x1 direct_packets_stat 0 ver 3.17 direct_qlen 1000
qdisc pfifo 10: parent 1:1 limit 100p
class htb 1:1 root leaf 10: prio 0 quantum 1542 rate 10Mbit overhead 24 ceil 10100Kbit linklayer ethernet mpu 84b
"""
_BARE = "qdisc noqueue 0: root refcnt 2 \n"


PORT = Shaping(1e7, 100)


def test_commands_shape_the_wire_rate_and_the_queue():
    text = PORT.commands("s1-eth1")
    assert text.splitlines()[0] == "qdisc replace dev s1-eth1 root handle 1: htb default 1"
    # A quarter of a full frame at once; what is later than that at 1 % above the rate, up to 8 frames.
    assert "rate 10000000bit ceil 10100000bit burst 12336 cburst 385 " in text
    assert "overhead 24 mpu 84" in text
    assert text.endswith("pfifo limit 100\n")


def test_read_back_agrees():
    wanted = {"s1-eth1": PORT, "s1-eth2": PORT}
    assert read_back_commands(wanted).splitlines()[2] == "qdisc show dev s1-eth2"
    assert shaping_problems(wanted, _SHOWN * 2) == []


def test_each_difference_is_a_sentence():
    assert shaping_problems({"s1-eth1": Shaping(2e7, 50, 28, HEAD_DROP)}, _SHOWN) == [
        "s1-eth1: asked for 20000000 bit/s, the kernel has 10000000 bit/s",
        "s1-eth1: asked for 20200000 bit/s when late, the kernel has 10100000 bit/s",
        "s1-eth1: frames are not counted as on the wire (28 bytes more)",
        "s1-eth1: asked for a queue pfifo_head_drop of 50 frames, the kernel has pfifo of 100",
    ]


def test_a_port_that_counts_short_frames_too_short_is_found():
    tagged = Shaping(1e7, 100, tag=4)
    assert shaping_problems({"s1-eth1": tagged}, _SHOWN) == [
        "s1-eth1: short frames are not counted as on the wire (88 bytes at least)"
    ]
    assert shaping_problems({"s1-eth1": tagged}, _SHOWN.replace("mpu 84b", "mpu 88b")) == []


def test_a_port_without_shaping_is_found():
    found = shaping_problems({"s1-eth1": PORT, "s1-eth2": PORT}, _SHOWN + _BARE)
    assert len(found) == 5
    assert all(problem.startswith("s1-eth2") for problem in found)
    assert found[-1].endswith("the kernel has none")


def test_a_missing_port_is_found():
    assert shaping_problems({"a": PORT, "b": PORT}, _SHOWN) == ["asked for shaping on 2 ports, the kernel shows 1"]
