"""Matching, against the plainest model: one list of all that has happened, searched from its start."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from lanikai.sim.host.mpi.matching import ANY_SOURCE, ANY_TAG, Matcher, Wanted

contexts = st.integers(0, 1)
sources = st.integers(0, 2)
tags = st.integers(0, 2)
messages = st.tuples(st.just("message"), contexts, sources, tags)
receives = st.tuples(st.just("receive"), contexts, sources | st.just(ANY_SOURCE), tags | st.just(ANY_TAG))


def suits(receive: tuple, message: tuple) -> bool:
    _, context, source, tag = receive
    return message[1] == context and source in (message[2], -1) and tag in (message[3], -1)


def model(steps: list[tuple]) -> list[int | None]:
    """For every step the earlier step that it meets, or None."""
    free: list[int] = []
    met = []
    for number, step in enumerate(steps):
        found = None
        for other in free:
            kinds = {steps[other][0], step[0]}
            receive, message = (step, steps[other]) if step[0] == "receive" else (steps[other], step)
            if kinds == {"receive", "message"} and suits(receive, message):
                found = other
                break
        if found is None:
            free.append(number)
        else:
            free.remove(found)
        met.append(found)
    return met


@given(st.lists(messages | receives, max_size=40))
def test_every_step_meets_what_the_model_says(steps) -> None:
    matcher: Matcher[int, int] = Matcher()
    met = []
    for number, (kind, context, source, tag) in enumerate(steps):
        if kind == "message":
            met.append(matcher.arrive(context, source, tag, number))
        else:
            wanted = Wanted(context, source, tag)
            found = matcher.find(wanted)
            met.append(matcher.post(wanted, number))
            assert found == met[-1]  # looking changes nothing
    assert met == model(steps)
    left = [number for number, step in enumerate(steps) if step[0] == "message" and met[number] is None]
    assert list(matcher) == [number for number in left if number not in met]
    assert matcher.unexpected == len(list(matcher))


def test_what_was_looked_at_is_counted() -> None:
    matcher: Matcher[str, str] = Matcher()
    for tag in range(5):
        matcher.arrive(0, 1, tag, f"message {tag}")
    assert matcher.post(Wanted(0, 1, 3), "receive") == "message 3" and matcher.looked == 4
    assert matcher.post(Wanted(0, 1, 9), "receive") is None and matcher.looked == 4
    assert matcher.arrive(0, 1, 9, "late") == "receive" and matcher.looked == 1
