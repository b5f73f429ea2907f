"""What is asked of a simulation of flows that begin and end, and whether it makes sense."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Literal, get_args

from testbed.base.errors import InputError, Problem, argument, did_you_mean
from testbed.base.ethernet import CHECK_SEQUENCE, HEADER, VLAN_TAG
from testbed.base.units import format_number
from testbed.engines.simulate.flow_sizes import find_sizes
from testbed.engines.simulate.packet_settings import PacketSettings, packet_problems

Congestion = Literal["none", "dcqcn"]
NextHop = Literal["path", "flow", "random", "round_robin", "least_queue"]
NEXT_HOPS: tuple[NextHop, ...] = get_args(NextHop)
CONGESTION: tuple[Congestion, ...] = get_args(Congestion)
# IPv4, UDP, base transport header and its check sequence (InfiniBand architecture, annex A17: RoCEv2).
ROCE_HEADERS = 20 + 8 + 12 + 4
_SMALLEST = 256  # bytes of a frame


@dataclass(frozen=True, slots=True)
class Dcqcn:
    """Parameters of DCQCN; the defaults are those of Zhu et al., SIGCOMM 2015, sections 3 and 5.

    That paper gives its additive increase, 40 Mbit/s, for links of 40 Gbit/s; here both increases are shares of the
    rate of a host's link. It does not give the hyper increase: ten times the additive one, as in 802.1Qau.
    """

    gain: float = 1 / 256  # g
    alpha_time: float = 55.0  # µs without a notification after which the estimate of congestion falls
    timer: float = 55.0  # µs between two increases by the timer
    byte_counter: int = 10_000_000  # bytes between two increases by the byte counter
    fast_recovery: int = 5  # F, increases by half before additive ones
    additive: float = 0.001  # R_AI, share of the rate of a host's link
    hyper: float = 0.01  # R_HAI, likewise
    interval: float = 50.0  # µs between two notifications of a flow


@dataclass(frozen=True, slots=True)
class FlowSettings:
    """Flows that hosts begin, and the switches that carry them."""

    switches: PacketSettings  # with `duration` in ms, in which flows begin; there is no warm-up
    sizes: str = "web_search"  # a distribution, or one size for all, see flow_sizes.find_sizes()
    load: float | None = 0.5  # share of its link's rate that each host asks for; None: a flow of each pair, all at 0
    congestion: Congestion = "dcqcn"  # `none`: hosts send at their links' rate
    # (RED) bytes in a queue up to which no frame is marked, and above which each is; chance of a mark at the latter
    k_min: int = 5_000
    k_max: int = 200_000
    p_max: float = 0.01
    dcqcn: Dcqcn = field(default_factory=Dcqcn)
    # how switches choose among the next hops of a routing that has several: `path` takes the plan's for each pair of
    # switches, `flow` one by a hash of each flow, the others one for each frame; None = `flow` where there are several
    next_hop: NextHop | None = None

    @property
    def payload(self) -> int:
        """Bytes of a flow that a frame carries."""
        return self.switches.frame - HEADER - VLAN_TAG - CHECK_SEQUENCE - ROCE_HEADERS


# Name of a parameter: the least and the most that it may be.
_REACH = {
    "gain": (1e-6, 1), "alpha_time": (0.001, 1e6), "timer": (0.001, 1e6), "byte_counter": (1, 1 << 40),
    "fast_recovery": (1, 1000), "additive": (1e-9, 1), "hyper": (1e-9, 1), "interval": (0.001, 1e6),
}  # fmt: skip


def parse_dcqcn(texts: list[str], problems: list[Problem]) -> Dcqcn:
    """Read `timer=300`, one parameter a text; what is wrong is added to the problems."""
    values: dict[str, float] = {}
    place = argument("dcqcn")
    for text in texts:
        name, equals, number = (part.strip() for part in text.partition("="))
        if name not in _REACH or not equals:
            sentence = f'should be PARAMETER=NUMBER with one of {", ".join(_REACH)}, not "{text}".'
            problems.append(Problem(place, sentence + did_you_mean(name, _REACH)))
            continue
        least, most = _REACH[name]
        try:
            value = float(number)
        except ValueError:
            problems.append(Problem(place, f'{name} should be a number, not "{number}"'))
            continue
        if name in values:
            problems.append(Problem(place, f"{name} is given twice"))
        elif not least <= value <= most:
            problems.append(Problem(place, f"{name} should be from {least:g} to {format_number(most)}, not {number}"))
        values[name] = value
    if problems:
        return Dcqcn()
    whole = {name: round(value) for name, value in values.items() if name in ("byte_counter", "fast_recovery")}
    return dataclasses.replace(Dcqcn(), **{**values, **whole})  # type: ignore[arg-type]  # whole numbers where they are


def seed_problems(seed: int) -> list[Problem]:
    """What is wrong with a seed."""
    if 0 <= seed < 1 << 32:
        return []
    return [Problem(argument("seed"), f"should be from 0 to {(1 << 32) - 1:,}, not {seed:,}")]


def flow_problems(settings: FlowSettings) -> list[Problem]:
    """Everything that is wrong with what is asked, whatever the fabric."""
    found: list[Problem] = []
    try:
        find_sizes(settings.sizes)
    except InputError as error:
        found += error.problems
    switches = settings.switches
    if settings.load is not None and not 0 < settings.load <= 1:
        found.append(Problem(argument("load"), f"should be above 0 and up to 1, not {settings.load:g}"))
    if settings.congestion not in CONGESTION:
        sentence = f'should be one of {", ".join(CONGESTION)}, not "{settings.congestion}".'
        found.append(Problem(argument("congestion"), sentence + did_you_mean(settings.congestion, CONGESTION)))
    if settings.next_hop is not None and settings.next_hop not in NEXT_HOPS:
        sentence = f'should be one of {", ".join(NEXT_HOPS)}, not "{settings.next_hop}".'
        found.append(Problem(argument("next_hop"), sentence + did_you_mean(settings.next_hop, NEXT_HOPS)))
    if not switches.lossless:
        sentence = (
            "should be pause or pfc: a frame that is dropped would have to be sent again, and go-back-N of network "
            "cards is not modelled"
        )
        found.append(Problem(argument("flow_control"), sentence))
    if switches.frame < _SMALLEST:
        found.append(Problem(argument("frame"), f"should be {_SMALLEST} or more, not {switches.frame}"))
    if not 0 <= settings.k_min < settings.k_max:
        sentence = f"of {settings.k_min:,} bytes should be 0 or more, and below {argument('k_max')}, {settings.k_max:,}"
        found.append(Problem(argument("k_min"), sentence))
    if not 0 < settings.p_max <= 1:
        found.append(Problem(argument("p_max"), f"should be above 0 and up to 1, not {settings.p_max:g}"))
    return found + [one for one in packet_problems(switches, 1) if one.key not in {other.key for other in found}]
