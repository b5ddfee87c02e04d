"""Cards without firmware that rest: the same to the cycle, whatever their processors and hosts do, and when."""

import logging

import pytest
from lanikai.sim.errors import SimulationError
from lanikai.sim.machine import ONE_THREAD, Threads
from lanikai.sim.run import run
from support.sim.pair import PAIR, STAMPING_PAIR

pytestmark = pytest.mark.xdist_group("gm-cluster")
# Its clock has 16 bits. The rate control unit holds on to what is a quarter of its range behind from cycle 24_564 on.
SPEC = {"end": 30_000, "longest_cycles": 15_000}


def play(folder, spec, seed, *, threads=ONE_THREAD, pair=PAIR, **changes):
    config = pair.replace(**changes)
    job = config.job("support.sim.rest_points:play", spec)
    return run(config.build(), *job, out_dir=folder, seed=seed, threads=threads)


def found(tmp_path, name, seed, *, check=False, **options):
    """Random use of two cards with two processors each: all that processors and hosts saw, and evaluations."""
    logging.getLogger(__name__).info("seed %d", seed)
    value = play(tmp_path / name, SPEC | {"check": check}, seed, **options).value
    assert len(value["found"]) > 300
    value.pop("skipped")
    return value, value.pop("evaluated")


def test_rest_is_not_seen(tmp_path):
    """Each card that has rested is byte for byte where it would have been.

    Cards carry out lists of accesses, timers, interrupts, transfers and packets. Pauses are about as long as it takes
    to rest.
    """
    resting, (few, total) = found(tmp_path, "resting", 1, check=True)
    awake, (all_nodes, _) = found(tmp_path, "awake", 1, skip_quiet=False, access_lists=False)
    assert resting == awake
    assert few < 0.8 * all_nodes < total


@pytest.mark.full
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_the_same_as_one_model(tmp_path, seed):
    """Composed and as one model, on one thread and on two, with lists and access by access."""
    plain, _ = found(tmp_path, "plain", seed, composed=False, access_lists=False)
    for name, options in {
        "lists": {"check": True},
        "accesses": {"check": True, "access_lists": False},
        "threads": {"threads": Threads(2, asked=True)},
        "lists of one model": {"composed": False},
    }.items():
        assert found(tmp_path, name, seed, **options)[0] == plain, name


@pytest.mark.full
@pytest.mark.parametrize("seed", [1, 2])
def test_cards_that_stamp_rest(tmp_path, seed):
    """Cards that stamp transfers and packets by themselves: composed, as one model, and without rest the same."""
    resting, (few, total) = found(tmp_path, "resting", seed, check=True, pair=STAMPING_PAIR)
    awake, (all_nodes, _) = found(tmp_path, "awake", seed, skip_quiet=False, pair=STAMPING_PAIR)
    plain, _ = found(tmp_path, "plain", seed, composed=False, access_lists=False, pair=STAMPING_PAIR)
    assert resting == awake == plain
    assert few < 0.7 * all_nodes < total


@pytest.mark.full
def test_a_hang_after_traffic_is_found_alike(tmp_path):
    """The watchdog fires in the same cycle, and shows the same, composed and as one model."""
    told = []
    for composed in (True, False):
        folder = tmp_path / str(composed)
        with pytest.raises(SimulationError) as caught:
            play(folder, SPEC | {"hang": True}, 5, composed=composed, watchdog_cycles=7_000)
        log = next(folder.rglob("simulation.log")).read_text()
        state = log.partition("watchdog: state in cycle")[2].splitlines()
        told.append((str(caught.value).partition(" (log")[0], state[: 1 + sum(": " in one for one in state)]))
    assert told[0] == told[1] and "nothing has moved for 7000 cycles" in told[0][0]
