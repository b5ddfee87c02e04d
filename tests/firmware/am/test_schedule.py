"""Weighted round robin with loitering: shares, skips and the bound on waiting."""

import random

import pytest
from lanikai.firmware.am.schedule import Turns


def turns(frames, attempts=8):
    made = Turns(attempts)
    for frame in frames:
        made.add(frame)
    return made


def test_busy_endpoints_have_as_many_attempts_each_in_a_row():
    schedule = turns([1, 2, 3], attempts=4)
    served = [schedule.choose(lambda frame: True) for _ in range(24)]
    assert served == [frame for frame in (1, 2, 3, 1, 2, 3) for _ in range(4)]


def test_empty_endpoints_are_skipped_and_a_lone_one_keeps_its_turn():
    schedule = turns([1, 2, 3], attempts=2)
    assert [schedule.choose(lambda frame: frame == 2) for _ in range(5)] == [2] * 5
    assert schedule.choose(lambda frame: False) is None
    assert not schedule.loiter(lambda frame: False)


def test_an_emptied_endpoint_is_loitered_at_for_the_rest_of_its_attempts_alone():
    schedule = turns([1, 2], attempts=8)
    busy = {1, 2}
    assert [schedule.choose(busy.__contains__) for _ in range(3)] == [1, 1, 1]
    busy.remove(1)
    assert schedule.loiter(busy.__contains__) == 5
    schedule.looked(2)
    busy.add(1)  # its process has posted more
    assert not schedule.loiter(busy.__contains__)
    assert [schedule.choose(busy.__contains__) for _ in range(4)] == [1, 1, 1, 2]
    assert schedule.turned
    busy.remove(2)
    busy.remove(1)
    assert not schedule.loiter(busy.__contains__), "nobody waits, so there is no turn to end"


def test_a_frame_that_leaves_gives_its_turn_to_the_next():
    schedule = turns([1, 2, 3], attempts=8)
    assert schedule.choose(lambda frame: frame > 1) == 2
    schedule.remove(2)
    assert schedule.choose(lambda frame: True) == 3
    schedule.add(2)
    assert [schedule.choose(lambda frame: True) for _ in range(8)] == [3] * 7 + [1]
    for frame in (1, 2, 3):
        schedule.remove(frame)
    assert schedule.choose(lambda frame: True) is None
    with pytest.raises(ValueError, match="attempts = 0: at least 1"):
        Turns(0)


def test_no_endpoint_waits_longer_than_the_bound():
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    frames, attempts = [1, 2, 3, 4, 5, 6, 7], 8
    schedule = turns(frames, attempts)
    posted = dict.fromkeys(frames, 0)
    waited = dict.fromkeys(frames, 0)
    for _ in range(20_000):
        for frame in frames:
            if draw.random() < 0.05 * frame:
                posted[frame] += draw.randrange(1, 12)
        looks = schedule.loiter(lambda frame: posted[frame] > 0)
        made = draw.randrange(1, looks + 1) if looks else 0
        schedule.looked(made)
        served = None if looks else schedule.choose(lambda frame: posted[frame] > 0)
        if served is not None:
            posted[served] -= 1
            waited[served] = 0
        for frame in frames:
            if frame != served and posted[frame]:
                waited[frame] += made or 1
                assert waited[frame] <= (len(frames) - 1) * attempts
