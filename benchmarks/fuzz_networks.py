"""Random networks in fifteen dialects, audited, and judged by a model of 802.1Q that shares no code with the auditor.

    make fuzz ARGS="--count 0 --networks 100000"                   # 20 minutes or so
    make fuzz ARGS="--count 0 --networks 1 --seed 7 --first 812"   # one of them again

Loops of each kind of frame, delivery of each pair, and copies of broadcasts and multicasts must be the same; what is
broken or not understood must not pass. What differs is stored in .cache/fuzz/networks, a folder each.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks import fuzz_networks_dialects
from benchmarks.fuzz_networks_dialects import VLANS, Asked, Drawn
from benchmarks.fuzz_networks_makers import MAKERS
from benchmarks.fuzz_networks_model import KINDS, Net, Place, Port
from testbed.base.errors import TestbedError
from testbed.devices.audit import Audit, audit
from testbed.devices.audit.read_folder import read_network

DIALECTS = fuzz_networks_dialects.DIALECTS | MAKERS


@dataclass
class Network:
    """One that was drawn.

    Attributes:
        dialect: key of DIALECTS.
        files: name → text.
        net: what it does.
        names: of its hosts in the audit → theirs in the net.
        unknown: whether a line is in it that nobody can know.
        alone: whether a switch is in it of which nothing says what it is plugged into, which may be told or not.
        hidden: hosts of the net that neither the cabling nor the lines of any port show, so nobody can know them.
    """

    dialect: str
    files: dict[str, str]
    net: Net
    names: dict[str, str]
    unknown: bool
    alone: bool
    hidden: set[str]


def draw_network(seed: int, number: int, dialect: str | None = None) -> Network:
    """A network by its number."""
    chance = Random(f"{seed} network {number}")
    dialect = dialect or chance.choice(list(DIALECTS))
    draw, spellings = DIALECTS[dialect]
    count = chance.randint(1, 4)
    next_port = dict.fromkeys(range(1, count + 1), 1)

    def port_of(switch: int) -> Place:
        next_port[switch] += 1
        return switch, next_port[switch] - 1

    cables: dict[Place, Place] = {}
    home = chance.choice((0, 1, 10, 10))
    for one, other in _links(chance, count, calm=bool(home)):
        ends = port_of(one), port_of(other)
        cables |= {ends[0]: ends[1], ends[1]: ends[0]}
    places = [port_of(chance.randint(1, count)) for _ in range(chance.randint(2, 5))]
    hosts = {f"h{number}": place for number, place in enumerate(places, 1)}
    entries = _entries(chance, hosts, cables) if chance.random() < 0.3 else []
    switches: dict[int, Drawn] = {}
    for switch in next_port:
        own = sorted(port for there, port in (*cables, *places) if there == switch)
        registered = [(host, mac, port) for there, host, mac, port in entries if there == switch]
        asked = Asked(f"s{switch}", own, [port for there, port in cables if there == switch], registered, home)
        switches[switch] = draw(chance, asked)
    net = _net(switches, cables, hosts)
    files = {
        name if name.startswith(f"s{switch}.") else f"s{switch}/{name}": text
        for switch, drawn in switches.items()
        for name, text in drawn.files.items()
    }
    names, told = _told(chance, net, dialect, spellings)
    unknown = any(drawn.unknown for drawn in switches.values())
    alone = bool(switches.keys() - {switch for switch, _ in (*cables, *places)})
    hidden = {host for host, (switch, port) in hosts.items() if port in switches[switch].unsaid and host not in names}
    return Network(dialect, files | told, net, names, unknown, alone, hidden)


def _links(chance: Random, count: int, *, calm: bool) -> list[tuple[int, int]]:
    """Which switches are joined: a calm network is a tree, and sometimes has one link more."""
    if count == 1:
        return []
    if not calm:
        pairs = chance.randint(count - 1, count + 1)
        return [tuple(chance.sample(range(1, count + 1), 2)) for _ in range(pairs)]  # type: ignore[misc]
    links = [(chance.randint(1, switch - 1), switch) for switch in range(2, count + 1)]
    one, other = chance.sample(range(1, count + 1), 2)
    return links + [(one, other)] * (chance.random() < 0.15)


def _entries(chance: Random, hosts: dict[str, Place], cables: dict[Place, Place]) -> list[tuple[int, str, str, int]]:
    """(switch, host, address, port): each host on its own switch, and by any port on some others."""
    found = []
    for number, (host, (own, port)) in enumerate(hosts.items(), 1):
        if chance.random() < 0.3:
            continue
        mac = f"02:00:00:00:00:{number:02x}"
        found.append((own, host, mac, port))
        for switch in sorted({switch for switch, _ in cables} - {own}):
            if chance.random() < 0.7:
                out = chance.choice([port for there, port in cables if there == switch])
                found.append((switch, host, mac, out))
    return found


def _net(switches: dict[int, Drawn], cables: dict[Place, Place], hosts: dict[str, Place]) -> Net:
    """What all switches do together: dynamic ports ask the other end what they are."""
    ports: dict[Place, Port] = {}
    for switch, drawn in switches.items():
        for number, port in drawn.ports.items():
            ports[switch, number] = port
            own, peer = drawn.dtp.get(number), cables.get((switch, number))
            if own and peer and own[0] != "trunk":
                other = switches[peer[0]].dtp.get(peer[1], ("", port))[0]
                if other in ("trunk", "desirable") or (other == "auto" and own[0] == "desirable"):
                    ports[switch, number] = own[1]
    entries = {
        (switch, vlan, host): port for switch, drawn in switches.items() for (vlan, host), port in drawn.entries.items()
    }
    for port in ports.values():
        if port.filters and port.pvid not in port.members:
            port.pvid = 0
    return Net(ports, cables, hosts, entries, (*VLANS, 4095))


def _told(chance: Random, net: Net, dialect: str, spellings: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
    """Cables as a table of them or as what neighbours say, and how the audit then calls the hosts."""
    done: set[Place] = set()
    if dialect not in ("cisco-ios", "running-bridge") or chance.random() < 0.7:
        rows = ["switch,port,peer,peer_port"]
        for one, other in net.cables.items():
            if other not in done:
                done.add(one)
                ends = [f"s{switch},{chance.choice(spellings).format(port)}" for switch, port in (one, other)]
                rows.append(",".join(ends))
        rows += [
            f"s{place[0]},{chance.choice(spellings).format(place[1])},{host}," for host, place in net.hosts.items()
        ]
        return {host: host for host in net.hosts}, {"cabling.csv": "\n".join([*rows, ""])}
    speaks = {host for host in net.hosts if chance.random() < 0.3}
    said = {
        switch: [
            *((port, f"s{other[0]}", other[1]) for (there, port), other in net.cables.items() if there == switch),
            *((port, host, 0) for host, (there, port) in net.hosts.items() if there == switch and host in speaks),
        ]
        for switch in {switch for switch, _ in net.ports}
    }
    names = {
        host if host in speaks else f"s{place[0]}:{spellings[0].format(place[1])}": host
        for host, place in net.hosts.items()
    }
    if dialect == "cisco-ios":
        heading = "Device ID           Local Intf     Hold-time  Capability      Port ID\n"
        return names, {
            f"s{switch}.lldp.txt": heading
            + "".join(f"{peer:20}{f'Gi1/0/{port}':15}{120:<11}{'B':16}Gi1/0/{end}\n" for port, peer, end in rows)
            for switch, rows in said.items()
        }
    return names, {
        f"s{switch}.lldp.json": json.dumps({"lldp": {"interface": [
            {f"swp{port}": {"chassis": {peer: {}}, "port": {"id": {"type": "ifname", "value": f"swp{end}"}}}}
            for port, peer, end in rows
        ]}})
        for switch, rows in said.items()
    }  # fmt: skip


def differences(drawn: Network) -> list[str]:
    """What an audit says otherwise than the model, a sentence each."""
    try:
        found = audit(read_network(drawn.files), pauses=False)
    except TestbedError as error:
        why = str(error)
        ports = [drawn.net.ports[place] for host, place in drawn.net.hosts.items() if host not in drawn.hidden]
        wanted = not any(port.up and port.pvid for port in ports)
        return [] if wanted and "no port leads to a host" in why else [f"refused: {why[:300]}"]
    net, hosts = drawn.net, found.network.hosts
    strange = [host for host in hosts if host not in drawn.names]
    if strange:
        return [f"hosts that there are not: {', '.join(strange)}"]
    said = []
    for kind in KINDS:
        told = {vlan for vlan in found.circulating[kind] if vlan in net.vlans}
        if told != net.loops(kind):
            said.append(f"{kind}s circulate in {sorted(net.loops(kind))}, and audit says {sorted(told)}")
    loops = any(net.loops(kind) for kind in KINDS)
    return [*said, *_frames(drawn, found), *_verdict(drawn, found, bad=loops)]


def _frames(drawn: Network, found: Audit) -> Iterator[str]:
    net, hosts = drawn.net, found.network.hosts
    for row, source in enumerate(hosts):
        floods = {kind: net.copies(drawn.names[source], kind) for kind in KINDS[:2]}
        for column, end in enumerate(hosts):
            if row == column:
                continue
            for kind, told in zip(KINDS, (found.broadcasts, found.multicasts), strict=False):
                copies = floods[kind]
                if copies is not None and copies[drawn.names[end]] != told[row, column]:
                    yield (
                        f"{kind} of {source} reaches {end} {copies[drawn.names[end]]} times, and audit says "
                        f"{told[row, column]:g}"
                    )
            got = net.copies(drawn.names[source], KINDS[2], drawn.names[end])
            arrives = got is not None and got[drawn.names[end]] == 1
            if arrives != bool(found.arrives[row, column]):
                yield f"{source}→{end} {'arrives' if arrives else 'does not arrive'}, and audit says the opposite"


def _verdict(drawn: Network, found: Audit, *, bad: bool) -> Iterator[str]:
    net, hosts = drawn.net, [drawn.names[host] for host in found.network.hosts]
    pairs = [(a, b) for a in hosts for b in hosts if a != b and net.meant(a, b)]
    for a, b in pairs:
        got = net.copies(a, KINDS[2], b)
        bad = bad or got is None or got[b] != 1
    if found.pairs != len(pairs):
        yield f"{len(pairs)} pairs share a VLAN, and audit says {found.pairs}"
    if found.verdict == "pass" and (bad or drawn.unknown or not pairs):
        yield "a false all-clear"
    if drawn.unknown and not found.network.unclear:
        yield "a line that nobody can know is not told"
    if found.verdict == "not understood" and not (drawn.unknown or drawn.alone):
        yield f"it is understood, and audit says that it is not: {found.network.unclear[0]}"


@dataclass
class Judged:
    """What came of many networks so far.

    Attributes:
        done: how many there were.
        counts: dialect, or what else there is to say → how many.
        wrong: (number, dialect, sentences) of each that differs.
    """

    done: int
    counts: Counter[str]
    wrong: list[tuple[int, str, list[str]]]


def judge_networks(count: int, seed: int, first: int = 0) -> Iterator[Judged]:
    """Draw and judge networks; what was found so far after each hundred."""
    judged = Judged(0, Counter(), [])
    for number in range(first, first + count):
        drawn = draw_network(seed, number)
        said = differences(drawn)
        judged.done += 1
        judged.counts[drawn.dialect] += 1
        judged.counts["with unknown lines"] += drawn.unknown
        judged.counts["that loop"] += any(drawn.net.loops(kind) for kind in KINDS)
        if said:
            judged.wrong.append((number, drawn.dialect, said))
        if number % 100 == 99 or number == first + count - 1:
            yield judged


def store_network(drawn: Network, folder: Path, said: list[str]) -> Path:
    """Write a network's files for `testbed audit`."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in drawn.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder.parent / f"{folder.name}.txt").write_text("\n".join([*said, ""]))
    return folder
