"""Two processors on a card, on two nodes: a program that sends beside one that receives."""

import pytest
from lanikai.firmware.costs import CostTable
from lanikai.firmware.processor import processors
from lanikai.sim.run import run
from support.sim.pair import PAIR


def exchange(folder, processors, *, count=24):
    job = PAIR.job("support.sim.pair_points:exchange", {"count": count, "processors": processors})
    return run(PAIR.build(), *job, out_dir=folder, seed=1).value


def test_two_processors_send_and_receive_at_once(tmp_path):
    """The same programs run on one processor and on two, with the same doorbells. Every message is right, and two are
    done in less than two thirds of the time."""
    one, two = exchange(tmp_path / "one", 1), exchange(tmp_path / "two", 2)
    for found in (one, two):
        assert found["right"] == [True, True] and found["dropped"] == 0
        assert found["orders"] == [list(range(24))] * 2
    assert two["cycles"] < 2 / 3 * one["cycles"], (two, one)
    # One was busy nearly all the time; the work is the same, but for what wakes both.
    (alone,), pair = one["spent"][0], two["spent"][0]
    assert alone > 0.8 * one["cycles"]
    assert abs(sum(pair) - alone) < 0.2 * alone and min(pair) > 0.3 * sum(pair)


@pytest.mark.full
def test_the_same_run_again_takes_the_same_cycles(tmp_path):
    assert exchange(tmp_path / "one", 2) == exchange(tmp_path / "again", 2)


def test_a_lock_keeps_one_processors_accesses_together(tmp_path):
    """Both read and write a word: without the lock additions are lost."""

    def total(locked):
        job = PAIR.job("support.sim.pair_points:count", {"times": 30, "locked": locked})
        return run(PAIR.build(), *job, out_dir=tmp_path, seed=1).value

    assert total(True) == {"total": 60, "heard": [41, 42]}
    assert total(False)["total"] < 60


def test_timers_of_both_fire_in_their_cycle_when_time_is_passed_over(tmp_path):
    """The cycles are the same, with and without passing over those in which nothing happens."""

    def woken(skip_quiet):
        config = PAIR.replace(skip_quiet=skip_quiet)
        job = config.job("support.sim.pair_points:timers", {"times": 12})
        return run(config.build(), *job, out_dir=tmp_path, seed=5).value

    fast, slow = woken(True), woken(False)
    assert fast["woken"] == slow["woken"] and len(fast["woken"]) == 48
    assert slow["skipped"] == 0 < fast["skipped"]


def test_a_table_for_all_processors_or_one_each():
    class Card:
        processors = (None, None)

    with pytest.raises(ValueError, match=r"^3 cost tables for 2 processors: one for all, or one each$"):
        processors(Card(), *[CostTable("any", {})] * 3)
