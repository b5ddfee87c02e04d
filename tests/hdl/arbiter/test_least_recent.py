"""Least recently served first against a plain list."""

from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.arbiter.least_recent import LeastRecentArbiter

from .test_round_robin import cases, drive


@settings(max_examples=25, deadline=None, derandomize=True)
@given(cases())
def test_it_is_the_model(case):
    """A requester that was served goes to the end of the line, and nobody else moves."""
    size, cycles = case
    line = list(range(size))

    def check(requests, advance, grant):
        winner = next((i for i in line if requests >> i & 1), None)
        assert grant == (0 if winner is None else 1 << winner)
        if advance and winner is not None:
            line.remove(winner)
            line.append(winner)

    drive(LeastRecentArbiter(size=size), cycles, check)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(cases(), st.integers(0, 15))
def test_it_keeps_its_bound_on_waiting(case, patient):
    size, cycles = case
    patient %= size
    passed = 0

    def check(requests, advance, grant):
        nonlocal passed
        passed = 0 if grant >> patient & 1 else passed + advance
        assert passed <= size - 1

    drive(LeastRecentArbiter(size=size), [(r | 1 << patient, a) for r, a in cycles], check)
