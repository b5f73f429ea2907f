"""A first scenario of a fabric that a file describes."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import PurePath

from testbed.base.units import count_noun, format_rate
from testbed.base.untrusted_text import csv_text, escape_line
from testbed.fabric.topologies.any_graph import Graph, quote_name
from testbed.fabric.topologies.build_topology import count_pairs
from testbed.scenario.fabric_file import read_file_fabric
from testbed.scenario.fabric_files.formats import find_format
from testbed.scenario.fabric_files.listing import FileFabric

_MOST_HOSTS_NAMED = 256
_STEM, _SUFFIX = re.compile(r"[^A-Za-z0-9_-]+"), re.compile(r"\.[A-Za-z0-9]{1,16}")
_LOADS = """\
workloads:                               # others: testbed list workloads
  - {kind: ping, pattern: shift:1}
"""
_DEMANDS = """\
  - {{kind: iperf3, protocol: udp, matrix: {file}, seconds: 5}}  # flows in the ratio of the file's demands
"""


def write_first_scenario(text: str, name: str) -> tuple[dict[str, str], FileFabric]:
    """Make a scenario beside a copy of a fabric's file, and where that has demands a matrix of them.

    Args:
        text: of the file.
        name: of the file.

    Returns:
        name of each file, the scenario's first, and its text; and the fabric.

    Raises:
        InputError: all that is wrong with the text.
    """
    form = find_format(text, name)
    found = read_file_fabric(text, name, form, None)
    stem = _STEM.sub("-", PurePath(name).stem.removesuffix(".clab")).strip("-") or "fabric"
    suffix = PurePath(name).suffix
    copy = f"{stem}{suffix}" if _SUFFIX.fullmatch(suffix) else f"{stem}.txt"
    if suffix in (".yml", ".yaml"):
        copy = f"{stem}.{form}.yml"  # so that it is not taken for a scenario
    files = {f"{stem}.yaml": "", copy: text}
    demands = f"{stem}-demands.csv" if found.demands else ""
    files[f"{stem}.yaml"] = _write_scenario(found, copy, form, demands)
    if demands:
        rows = ((f"h{one + 1}", f"h{other + 1}", max(1, round(size))) for one, other, size in found.demands)
        files[demands] = csv_text(("source", "destination", "bytes"), rows)
    return files, found


def count_words(graph: Graph) -> str:
    """Switches, links between them and hosts, counted."""
    return ", ".join(
        (
            count_noun(len(graph.switches), "switch", "es"),
            count_noun(len(graph.links), "link"),
            count_noun(sum(graph.hosts_on), "host"),
        )
    )


def _write_scenario(found: FileFabric, copy: str, form: str, demands: str) -> str:
    lines = [f"description: {count_words(found.graph)}, as {copy} describes them"]
    lines += [f"# {escape_line(note)}" for note in found.notes]
    lines += _host_lines(found)
    lines.append(f"topology: {{kind: file, path: {copy}, format: {form}}}")
    lines.append("routing: {kind: updown}                  # for any topology; others: testbed list routings")
    lines += _rate_lines(found)
    lines.append(
        "lab: {dilation: auto}                    # the lab's links run at a part of it that the machine manages"
    )
    text = "\n".join(lines) + "\n"
    if sum(found.graph.hosts_on) > 1:
        text += _LOADS + (_DEMANDS.format(file=demands) if demands else "")
    return text


def _host_lines(found: FileFabric) -> list[str]:
    if not found.host_names:
        return []
    names = found.host_names[:_MOST_HOSTS_NAMED]
    more = f", and so on to h{len(found.host_names)}" if len(found.host_names) > len(names) else ""
    said = ", ".join(f"h{number} {quote_name(name)}" for number, name in enumerate(names, 1))
    return [f"# hosts: {said}{more}"]


def _rate_lines(found: FileFabric) -> list[str]:
    """The `links` block: the rate of the fastest links between switches, the others by name."""
    told = Counter(rate for rate in found.rates if rate is not None)
    edge = [rate for rate in found.host_rates if rate is not None]
    if not told and not edge:
        return ["links: {rate: 1 Gbit/s}                  # of the real world; the file does not say it"]
    usual = max(told) if told else min(edge)
    lines = ["links:", f"  rate: {format_rate(usual)}"]
    if edge:
        slowest = "" if len({*edge}) == 1 else "  # the slowest of them; in the file they differ"
        lines.append(f"  host_rate: {format_rate(min(edge))}{slowest}")
    others = [(link, rate) for link, rate in zip(_name_links(found.graph), found.rates, strict=True) if rate != usual]
    known = [(link, rate) for link, rate in others if rate is not None]
    if known:
        lines.append("  rates:")
        lines += [f"    {link}: {format_rate(rate)}" for link, rate in known]
    if len(known) < len(others):
        lines.append(f"  # of {count_noun(len(others) - len(known), 'link')} the file says no rate")
    return lines


def _name_links(graph: Graph) -> list[str]:
    """Name of each link, such as s1-s2 or s1-s2#1."""
    number = {name: at for at, name in enumerate(graph.switches, 1)}
    pairs, _ = count_pairs((number[one], number[other]) for one, other in graph.links)
    known, plane, names = set(pairs), Counter[tuple[int, int]](), []
    for one, other in graph.links:
        pair = (number[one], number[other])
        pair = pair if pair in known else pair[::-1]
        names.append(f"s{pair[0]}-s{pair[1]}" + (f"#{plane[pair]}" if plane[pair] else ""))
        plane[pair] += 1
    return names
