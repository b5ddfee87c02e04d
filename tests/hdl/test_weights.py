"""Weights from bandwidths: the document's examples (yum-2006 3.3), and properties for any numbers."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanikai.hdl import weights
from lanikai.hdl.config import ConfigError


@pytest.mark.parametrize(
    ("bandwidths", "frame", "expected"),
    [
        ([100, 200], 3, [1, 2]),
        ([100, 200], 300, [100, 200]),
        ([100, 200], 6, [2, 4]),
        ([101, 200], 6, [2, 4]),
        ([101, 200], 301, [101, 200]),
    ],
)
def test_weights_of_the_document(bandwidths, frame, expected):
    assert weights.vl_weights(bandwidths, frame) == expected


def test_exact_weights_of_the_document():
    assert weights.exact_weights([100, 200]) == [1, 2]
    assert weights.exact_weights([101, 200]) == [101, 200]
    assert weights.exact_weights([0, 0]) == [0, 0]


def test_frames_of_the_document():
    assert weights.small_frame(4, 11) == 44
    assert weights.LARGE_FRAME == 16320


@given(st.lists(st.integers(0, 1000), max_size=16), st.integers(16, 16320))
def test_weights_fill_the_frame_and_are_off_by_less_than_a_flit(bandwidths, frame):
    total = sum(bandwidths)
    given_out = weights.vl_weights(bandwidths, frame)
    for bandwidth, weight in zip(bandwidths, given_out, strict=True):
        assert (weight == 0) == (bandwidth == 0)
        assert not bandwidth or weight == 1 or abs(weight - Fraction(bandwidth * frame, total)) < 1
    if total:
        raised = sum(1 for b in bandwidths if 0 < b * frame < total)
        assert frame <= sum(given_out) <= frame + raised


@pytest.mark.parametrize(
    ("link", "peak", "limit"),
    [(100, 50, 2), (100, 80, 5), (100, 70, 3), (100, 0, 1), (100, 100, 255), (9, 12, 255)],
)
def test_limit_of_high_priority(link, peak, limit):
    assert weights.high_priority_limit(link, peak) == limit


def test_limit_is_never_mistaken_for_none():
    assert weights.high_priority_limit(1000, 999) == 254
    assert weights.limit_for_low_share(1000, 1) == 254


@given(st.integers(1, 10000), st.data())
def test_limit_for_low_share_keeps_it_and_is_the_largest(link, data):
    low = data.draw(st.integers(0, link // 2))
    limit = weights.limit_for_low_share(link, low)
    if low == 0:
        assert limit == weights.NO_LIMIT
        return
    assert Fraction(link, limit + 1) >= low
    assert limit == 254 or Fraction(link, limit + 2) < low


def test_table_splits_large_weights():
    assert weights.table_entries([0, 3, 600]) == [(1, 3), (2, 255), (2, 255), (2, 90)]
    assert len(weights.table_entries([16320])) == 64


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: weights.vl_weights([1], 0), "vl_weights: frame = 0: at least 1"),
        (lambda: weights.vl_weights([1, -2], 3), "vl_weights: bandwidth of VL 1 = -2: at least 0"),
        (lambda: weights.exact_weights([-2]), "exact_weights: bandwidth of VL 0 = -2: at least 0"),
        (lambda: weights.small_frame(0, 4), "small_frame: k = 0: at least 1"),
        (lambda: weights.small_frame(4, 0), "small_frame: real_time_vls = 0: at least 1"),
        (
            lambda: weights.high_priority_limit(0, 4),
            "high_priority_limit: link = 0, peak = 4: above 0, and at least 0",
        ),
        (lambda: weights.limit_for_low_share(9, 5), "limit_for_low_share: low = 5: 0 to half the link's 9"),
        (
            lambda: weights.table_entries([256, 1], 2),
            "table_entries: weights [256, 1] need 3 entries; the table has 2",
        ),
        (lambda: weights.table_entries([-1]), "table_entries: weight of VL 0 = -1: at least 0"),
    ],
)
def test_wrong_values_are_refused(call, message):
    with pytest.raises(ConfigError) as error:
        call()
    assert str(error.value) == message
