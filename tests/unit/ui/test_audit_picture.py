"""The picture of an audited network: which links it says loop, end frames, are blocked or down."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.devices.ios_keywords import abbreviate_ports
from tests.unit.ui.test_cli_surface import typed

TRUNK = " switchport mode trunk\n"


def save(folder: Path, first: str = "", *, port: str = TRUNK) -> Path:
    """Three Catalysts in a ring; what the first says, and of its port to the second."""
    folder.mkdir()
    for n in (1, 2, 3):
        ports = [port if n == 1 else TRUNK, TRUNK, " switchport access vlan 10\n switchport mode access\n"]
        text = "".join(f"interface GigabitEthernet1/0/{p}\n{said}!\n" for p, said in enumerate(ports, 1))
        (folder / f"s{n}.txt").write_text(f"vlan 10\n!\n{first}{text}end\n")
    rows = [f"s{n},Gi1/0/1,s{n % 3 + 1},Gi1/0/2\ns{n},Gi1/0/3,h{n},\n" for n in (1, 2, 3)]
    (folder / "cabling.csv").write_text("switch,port,peer,peer_port\n" + "".join(rows))
    return folder


def drawn(folder: Path, code: int) -> str:
    file = folder.with_suffix(".svg")
    assert typed("audit", str(folder), "-o", str(file))[0] == code
    return file.read_text()


def test_a_picture_says_what_loops_and_what_is_blocked(tmp_path):
    looping = drawn(save(tmp_path / "loop", "no spanning-tree vlan 1-4094\n!\n"), 1)
    assert "loops, in VLANs 1,10" in looping
    assert "blocked" not in looping
    sound = drawn(save(tmp_path / "sound"), 0)
    assert "blocked by the spanning tree protocol" in sound
    assert "loops" not in sound


def test_a_picture_says_which_ends_do_not_agree_on_vlans(tmp_path):
    pruned = f"{TRUNK} switchport trunk allowed vlan 1\n"
    folder = save(tmp_path / "cut", "no spanning-tree vlan 1-4094\n!\n", port=pruned)
    text = (folder / "s3.txt").read_text()
    (folder / "s3.txt").write_text(text.replace("1/0/1\n", "1/0/1\n shutdown\n"))
    found = drawn(folder, 1)
    assert "carries nothing" in found
    assert "VLANs of one end alone" in found


def test_a_name_with_a_tag_is_text_in_the_picture(tmp_path):
    folder = save(tmp_path / "net")
    for file in ("s1.txt", "cabling.csv"):
        text = (folder / file).read_text()
        (folder / file.replace("s1.", "<b>.")).write_text(text.replace("s1,", "<b>,"))
    (folder / "s1.txt").unlink()
    assert "<b>" not in drawn(folder, 0)


@pytest.mark.parametrize("more", [("-o", "x.txt"), ("-o", "x.svg", "--each-link")])
def test_a_picture_that_cannot_be_drawn_is_refused_before(tmp_path, more):
    code, _, told = typed("audit", str(save(tmp_path / "net")), *more)
    assert code == 2
    assert "--output" in told
    assert not Path(more[1]).exists()


def test_findings_have_short_names_of_ports(tmp_path):
    code, text = typed("audit", str(save(tmp_path / "net", "no spanning-tree vlan 1-4094\n!\n")))[:2]
    assert code == 1
    assert "s1:Gi1/0/2" in text
    assert "GigabitEthernet" not in text


def test_each_kind_of_port_has_the_short_name_that_ios_prints():
    names = "TenGigabitEthernet1/1/1 TwentyFiveGigE1/0/1 FastEthernet0/1 Port-channel2 Ethernet1 GigabitEthernets"
    assert abbreviate_ports(names) == "Te1/1/1 Twe1/0/1 Fa0/1 Po2 Ethernet1 GigabitEthernets"
