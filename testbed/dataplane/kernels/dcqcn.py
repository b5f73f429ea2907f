"""Rates of DCQCN's senders: Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015, section 3.

A sender begins at the rate of its link. A congestion notification (CNP) lowers its rate by a share that it estimates,
`alpha`; without any, the rate comes back: a few times half way to the rate before, then beyond it by fixed steps. Rates
are shares of the rate of the host's link, times picoseconds.
"""

from __future__ import annotations

from typing import NamedTuple

from testbed.base.jit import jit_inner
from testbed.base.model import Bools, Floats, Longs

_FULL = 1 - 1e-6  # of the link's rate: not limited any more


class DcqcnRates(NamedTuple):
    """The reaction points of F flows, and what they have in common."""

    controlled: bool  # whether notifications change anything; False = hosts send at their link's rate always
    gain: float  # g, weight of a new notification in `alpha`
    alpha_time: int  # ps without a notification after which `alpha` falls
    timer: int  # ps between two increases by the timer
    byte_counter: int  # frames between two increases by the byte counter
    fast: int  # F, increases of fast recovery
    additive: float  # R_AI, a step of the target rate
    hyper: float  # R_HAI, a step of it once timer and byte counter are both past fast recovery
    rate: Floats  # (F,) R_C, at which a flow sends
    target: Floats  # (F,) R_T, to which it returns
    alpha: Floats  # (F,) estimated share of marked frames
    told: Longs  # (F,) ps of the last notification, or of the last fall of `alpha`
    limited: Bools  # (F,) whether a flow sends below its link's rate
    times: Longs  # (F,) increases by the timer since the last notification
    counts: Longs  # (F,) increases by the byte counter since then
    frames: Longs  # (F,) frames since the last increase by the byte counter
    deadline: Longs  # (F,) ps of the next increase by the timer
    ticking: Bools  # (F,) whether that is an event already


@jit_inner
def heed_notification(rates: DcqcnRates, flow: int, now: int) -> None:
    """A notification has come: lower the rate (equation 1), and begin to count anew."""
    _lower_alpha(rates, flow, now)
    rates.target[flow] = rates.rate[flow]
    rates.rate[flow] *= 1 - rates.alpha[flow] / 2
    rates.alpha[flow] += (1 - rates.alpha[flow]) * rates.gain
    rates.limited[flow] = True
    rates.times[flow] = rates.counts[flow] = rates.frames[flow] = 0
    rates.told[flow] = now
    rates.deadline[flow] = now + rates.timer


@jit_inner
def increase_by_timer(rates: DcqcnRates, flow: int, now: int) -> None:
    """The timer has run out: a step up."""
    rates.times[flow] += 1
    rates.deadline[flow] = now + rates.timer
    _increase(rates, flow)


@jit_inner
def count_frame(rates: DcqcnRates, flow: int) -> None:
    """A frame was sent: a step up after so many."""
    rates.frames[flow] += 1
    if rates.frames[flow] >= rates.byte_counter:
        rates.frames[flow] = 0
        rates.counts[flow] += 1
        _increase(rates, flow)


@jit_inner
def _lower_alpha(rates: DcqcnRates, flow: int, now: int) -> None:
    """What `alpha` has fallen by since it was last looked at (equation 2)."""
    falls = (now - rates.told[flow]) // rates.alpha_time
    rates.alpha[flow] *= (1 - rates.gain) ** falls
    rates.told[flow] += falls * rates.alpha_time


@jit_inner
def _increase(rates: DcqcnRates, flow: int) -> None:
    """Fast recovery, additive increase, or hyper increase (figure 7 and equations 3 and 4)."""
    if max(rates.times[flow], rates.counts[flow]) > rates.fast:
        step = rates.hyper if min(rates.times[flow], rates.counts[flow]) > rates.fast else rates.additive
        rates.target[flow] = min(rates.target[flow] + step, 1.0)
    rates.rate[flow] = (rates.rate[flow] + rates.target[flow]) / 2
    if rates.rate[flow] >= _FULL:
        rates.rate[flow] = 1.0
        rates.limited[flow] = False
