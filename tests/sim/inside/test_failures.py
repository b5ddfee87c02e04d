"""Lines of the user's in a failure, and calls that nobody awaits."""

import sys
import warnings

import pytest
from lanikai.sim.errors import SimulationError
from lanikai.sim.inside.failures import not_begun, remember_calls, user_lines, watch_awaits


def failing():
    try:
        raise KeyError("inner")
    except KeyError as error:
        raise ValueError("outer") from error


def test_lines_of_the_cause_come_first():
    with pytest.raises(ValueError) as caught:
        failing()
    lines = user_lines(caught.value)
    assert [line.strip() for line in lines if line.startswith("    ")] == ['raise KeyError("inner")']


@pytest.mark.parametrize("length", [1, 2])
def test_causes_in_a_circle_end(length):
    """An error that is its own cause, and two that are each other's."""
    errors = [ValueError(str(index)) for index in range(length)]
    for index, error in enumerate(errors):
        error.__cause__ = errors[(index + 1) % length]
    assert user_lines(errors[0]) == []


async def call():
    """A coroutine that somebody may forget to await."""


def test_a_call_without_await_is_a_failure_with_its_line():
    told = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        watch_awaits(told.append)
        call()
        warnings.warn("something else", RuntimeWarning, stacklevel=1)
    [error] = told
    assert isinstance(error, SimulationError)
    assert str(error) == "call() was called without await, so it did nothing"
    place, text = error.lines
    assert place.startswith(f'  File "{__file__}", line ') and text == "    call()"


@pytest.fixture
def remembered():
    depth = sys.get_coroutine_origin_tracking_depth()
    remember_calls()
    yield
    sys.set_coroutine_origin_tracking_depth(depth)


def test_a_call_that_a_name_holds_is_told_with_the_line_that_made_it(remembered):
    """The name, and so the coroutine, goes when its function has ended."""
    told = []

    def keeps():
        kept = call()
        assert kept

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        watch_awaits(told.append)
        keeps()
    [error] = told
    assert str(error) == "call() was called without await, so it did nothing"
    place, text = error.lines
    assert place.startswith(f'  File "{__file__}", line ') and text == "    kept = call()"


def test_calls_that_are_held_and_have_not_begun_are_found(remembered):
    kept = call()
    first, place, text = not_begun()
    kept.close()
    assert first == "call() has not begun: was `await` forgotten?"
    assert place.startswith(f'  File "{__file__}", line ') and text == "    kept = call()"
    assert not_begun() == []


def test_a_call_of_ours_without_await_is_only_a_warning():
    """The simulator's end drops coroutines that have not begun."""
    told = []
    with warnings.catch_warnings():
        watch_awaits(told.append)
        text = "coroutine 'call' was never awaited"
        warnings.showwarning(RuntimeWarning(text), RuntimeWarning, warnings.__file__, 1)
    assert told == []
