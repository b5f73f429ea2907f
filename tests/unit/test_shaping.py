from testbed.emulate.shaping import read_back_commands, shaping_commands, shaping_problems

_SHOWN = """\
qdisc htb 1: root refcnt 3 r2q 10 default 0x1 direct_packets_stat 0 ver 3.17 direct_qlen 1000
qdisc pfifo 10: parent 1:1 limit 100p
class htb 1:1 root leaf 10: prio 0 quantum 1542 rate 10Mbit overhead 24 ceil 10Mbit linklayer ethernet mpu 84b
"""
_BARE = "qdisc noqueue 0: root refcnt 2 \n"


def test_commands_shape_the_wire_rate_and_the_queue():
    text = shaping_commands("s1-eth1", 1e7, 100)
    assert text.splitlines()[0] == "qdisc replace dev s1-eth1 root handle 1: htb default 1"
    assert "rate 10000000bit ceil 10000000bit" in text
    assert "overhead 24 mpu 84" in text
    assert text.endswith("pfifo limit 100\n")


def test_read_back_agrees():
    wanted = {"s1-eth1": (1e7, 24), "s1-eth2": (1e7, 24)}
    assert read_back_commands(wanted).splitlines()[2] == "qdisc show dev s1-eth2"
    assert shaping_problems(wanted, 100, _SHOWN * 2) == []


def test_each_difference_is_a_sentence():
    wanted = {"s1-eth1": (2e7, 28)}
    assert shaping_problems(wanted, 50, _SHOWN) == [
        "s1-eth1: asked for 20000000 bit/s, the kernel has 10000000 bit/s",
        "s1-eth1: frames are not counted as on the wire (28 bytes more)",
        "s1-eth1: asked for a queue of 50 frames, the kernel has [100]",
    ]


def test_a_port_without_shaping_is_found():
    found = shaping_problems({"s1-eth1": (1e7, 24), "s1-eth2": (1e7, 24)}, 100, _SHOWN + _BARE)
    assert len(found) == 3
    assert all(problem.startswith("s1-eth2") for problem in found)


def test_a_missing_port_is_found():
    assert shaping_problems({"a": (1e7, 24), "b": (1e7, 24)}, 100, _SHOWN) == [
        "asked for shaping on 2 ports, the kernel shows 1"
    ]
