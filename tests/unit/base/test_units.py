from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.base.units import (
    TimeScale,
    count_noun,
    format_number,
    format_quantity,
    format_rate,
    format_seconds,
    format_share,
    parse_rate,
)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("1 Gbit/s", 1e9),
        ("100Mbit/s", 1e8),
        (" 2.5 gbit/s ", 2.5e9),
        ("5. kbit/s", 5e3),
        (".5 Tbit/s", 5e11),
        ("1e3 bit/s", 1e3),
        ("+1.5E+2 KBIT/S", 1.5e5),
        ("1G", 1e9),
        ("10 Gb", 1e10),
        ("100 Mbps", 1e8),
        ("25Gbit", 2.5e10),
        ("9600 bps", 9600.0),
    ],
)
def test_parse_rate(text, rate):
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    "text", ["", "1", "Gbit/s", "1 GB", "1 GB/s", "1 Gpbs", "1 b", "1,5 Gbit/s", "1 2 Gbit/s", "٣ Gbit/s"]
)
def test_what_is_no_rate(text):
    with pytest.raises(ValueError, match="write a number and a unit") as error:
        parse_rate(text)
    assert f'"{text}"' in str(error.value)


@pytest.mark.parametrize("text", ["0 Gbit/s", "-1 Gbit/s", "-0.0 bit/s", "1e-400 bit/s"])
def test_rates_must_be_above_zero(text):
    with pytest.raises(ValueError, match="above 0"):
        parse_rate(text)


@given(st.floats(1, 1e13))
def test_a_rate_written_in_bits_is_read_back_exactly(rate):
    assert parse_rate(f"{rate:.17g} bit/s") == rate


@given(st.floats(1, 1e14))
def test_a_shown_rate_is_right_to_four_digits(rate):
    assert parse_rate(format_rate(rate)) == pytest.approx(rate, rel=6e-4)


@pytest.mark.parametrize(
    ("rate", "text"),
    [(0, "0 bit/s"), (999, "999 bit/s"), (64e3, "64 kbit/s"), (957.03e6, "957 Mbit/s"), (1e9, "1 Gbit/s"),
     (1e13, "10 Tbit/s"), (-2e9, "-2 Gbit/s")],
)  # fmt: skip
def test_format_rate(rate, text):
    assert format_rate(rate) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(12, "12 s"), (0.0123456, "12.35 ms"), (5e-5, "50 µs"), (1.5e-7, "150 ns"), (0, "0 ns"), (-2e-3, "-2 ms")],
)
def test_format_seconds(seconds, text):
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (2e9, "bit/s", "2 Gbit/s"),
        (0.5, "s", "500 ms"),
        (0.997, "ratio", "99.7 %"),
        (42, "", "42"),
        (3, "W", "3 W"),
        (73_364, "B", "73.36 kB"),
        (512, "B", "512 B"),
        (0, "B", "0 B"),
        (3.243e7, "B", "32.43 MB"),
    ],
)
def test_format_quantity(value, unit, text):
    assert format_quantity(value, unit) == text


def test_a_dilated_lab_is_slower_in_rates_and_longer_in_times():
    scale = TimeScale(100)
    assert scale.lab_rate(1e9) == 1e7
    assert scale.to_real(1e7, "bit/s") == 1e9
    assert scale.to_real(0.05, "s") == 0.0005
    assert scale.to_real(0.97, "ratio") == 0.97
    assert scale.to_real(3, "") == 3


@given(st.floats(1, 1e6), st.floats(1e3, 1e12))
def test_a_rate_through_the_lab_and_back_is_the_same(dilation, rate):
    scale = TimeScale(dilation)
    assert scale.to_real(scale.lab_rate(rate), "bit/s") == pytest.approx(rate)


@pytest.mark.parametrize(
    ("count", "words", "text"),
    [(0, ("link",), "0 links"), (1, ("link",), "1 link"), (1024, ("switch", "es"), "1,024 switches")],
)
def test_counts_have_their_noun(count, words, text):
    assert count_noun(count, *words) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1931000, "frames", "1,931,000 frames"),
        (9999.7, "cycles", "10,000 cycles"),
        (0.00006409, "cycles", "0.00006409 cycles"),
        (1234.5, "", "1234"),
        (123456, "s", "123,456 s"),
        (3e15, "bit/s", "3000 Tbit/s"),
        (0.00006409, "ratio", "0.0064 %"),
        (0.2546, "ratio", "25.5 %"),
        (1e-9, "ratio", "below 0.0001 %"),
        (0, "ratio", "0 %"),
    ],
)
def test_quantities_have_no_exponents_and_shares_few_digits(value, unit, text):
    assert format_quantity(value, unit) == text


@given(st.floats(-1e15, 1e15))
def test_no_number_for_people_has_an_exponent(value):
    assert not re.search(r"\de", f"{format_number(value)} {format_share(value)}")
    assert float(format_number(value).replace(",", "")) == pytest.approx(value, rel=1e-3, abs=1e-300)
