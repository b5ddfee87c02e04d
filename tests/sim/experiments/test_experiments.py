"""The experiment framework: parameters, points, tolerances, the pool, the runner."""

from __future__ import annotations

import inspect
import math
import multiprocessing
import pickle
import signal
import threading
import time
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from lanikai.sim.errors import MissingTool, SimulationError, UserError
from lanikai.sim.experiments import share_senders
from lanikai.sim.experiments.framework import runner
from lanikai.sim.experiments.framework.base import within
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.framework.pool import JobCrash
from lanikai.sim.experiments.framework.results import Report
from lanikai.sim.experiments.framework.run_folder import RunFolder
from lanikai.sim.experiments.registry import EXPERIMENTS, find, listing
from lanikai.sim.experiments.share_senders import ShareSenders, round_counts
from lanikai.sim.inside.session import load_coroutine
from lanikai.sim.published import CONSTANTS, table, tables


@pytest.fixture
def fake():
    """The module of the fake backend, importable in the pool's processes too."""
    from support.sim import fake_backend

    return fake_backend


@pytest.fixture
def one_cluster(monkeypatch):
    """Take the configuration of a cluster away: the fake backend looks at none."""
    monkeypatch.setattr(ShareSenders, "cluster", lambda self, parameters: None)


def run_fake(
    folder: Path, backend, *, workers: int = 2, settings: tuple[str, ...] = (), seed: int = 1, seeds: int = 1
) -> Report:
    experiment = find("share-senders")
    parameters = parse(experiment, settings)
    return runner.execute(
        experiment,
        parameters,
        points=experiment.points(parameters, "quick"),
        size="quick",
        seed=seed,
        folder=RunFolder(folder, experiment="share-senders", size="quick", seed=seed),
        backend=backend,
        workers=workers,
        seeds=seeds,
    )


def test_every_table_of_the_published_numbers_is_listed_once():
    names = [row.name for row in listing()]
    assert sorted(names) == sorted({*tables(), *EXPERIMENTS} - CONSTANTS)
    states = {row.name: row.state for row in listing()}
    assert {name for name, state in states.items() if state == "built"} == set(EXPERIMENTS)
    assert set(states.values()) == {"built", "not built yet"}


OWN = {
    "am-contention",  # figures 7 to 9, without numbers in the text
    "video-reservation",
    "via-admission",
    "via-schedulers",
    "descriptor-fetch",
    "dma-bandwidth",
    "doorbell-latency",
    "faults",
    "collectives",
    "flow-times",
    "goal-replay",
    "network-trace",
    "mpi-replay",
    "network-load",
    "power-load",  # figure 3, without numbers in the text
    "rate-accuracy",
    "transfer",
    "vl-isolation",
    "wrr-shares",
    "via-anatomy",
}
"""Experiments that no document published; every other one is a table of the published numbers."""


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda experiment: experiment.name)
def test_an_experiment_says_what_it_is(experiment):
    assert experiment.asks.endswith("?")
    assert experiment.name in tables() or experiment.name in OWN
    assert inspect.iscoroutinefunction(load_coroutine(experiment.entry))
    for name, field in experiment.Parameters.model_fields.items():
        assert field.description, name


def test_unknown_experiments_are_named_with_what_was_meant():
    with pytest.raises(UserError, match=r"'share-sender' \(did you mean 'share-senders'\?\); built are: "):
        find("share-sender")
    with pytest.raises(
        UserError, match=r"'substrates' is not built yet; built are: .*share-senders, transfer, "
    ):
        find("substrates")
    with pytest.raises(UserError, match="'rtc' holds the constants"):
        find("rtc")


def test_the_watchdogs_wait_for_the_longest_idt_that_is_taken():
    """A flow of 700 T rests for longer than the watchdog of a cluster that has none."""
    experiment = ShareSenders()
    usual = experiment.cluster(parse(experiment, []))
    slow = experiment.cluster(parse(experiment, ["idt_over_T=[[2,2],[700]]"]))
    rests_cycles = 700 * 96 * usual.nic.tick_cycles
    assert usual.watchdog_cycles < rests_cycles < slow.watchdog_cycles
    longest = usual.nic.max_idt_ticks // 96
    forever = experiment.cluster(parse(experiment, [f"idt_over_T=[[{longest}]]"]))
    assert forever.watchdog_cycles in (0, 2 * 96 * longest * usual.nic.tick_cycles)
    assert forever.delivery_cycles >= 2 * 96 * longest * usual.nic.tick_cycles


def test_published_points_are_the_thesis_own():
    experiment = find("share-senders")
    points = experiment.points(parse(experiment, []), "full")
    assert [point.parameters["idt_ticks"] for point in points] == [[192, 192], [320, 137], [192, 384, 384]]
    assert [point.published["bandwidth_mb_per_s"] for point in points] == table("share-senders")[
        "achieved_mb_per_s"
    ]
    assert points[1].published["share"] == pytest.approx([0.3, 0.7], rel=1e-4)
    assert all(point.tolerance == {"bandwidth_mb_per_s": 0.03, "share": 0.01} for point in points)


def test_a_setting_that_was_not_published_has_nothing_to_be_held_against():
    experiment = find("share-senders")
    for settings in (["idt_over_T=[[2, 3]]"], ["message_bytes=4096"]):
        points = experiment.points(parse(experiment, settings), "quick")
        assert all(point.published is None and point.tolerance is None for point in points)


@given(st.lists(st.integers(10, 200), min_size=1, max_size=5))
def test_a_round_holds_the_proportions(idts):
    try:
        counts = round_counts(idts)
    except ValueError:
        assume(False)
    for one, idt in zip(counts, idts, strict=True):
        share = (1 / idt) / sum(1 / other for other in idts)
        assert math.isclose(one / sum(counts), share, rel_tol=share_senders.ROUND_ERROR * 1.001)


def test_rounds_of_the_published_settings():
    assert round_counts([192, 192]) == [1, 1]
    assert round_counts([320, 137]) == [3, 7]
    assert round_counts([192, 384, 384]) == [2, 1, 1]


def test_messages_with_a_short_last_packet_are_counted_whole():
    assert share_senders.unequal_packets(65536) == share_senders.unequal_packets(4096) == 1
    assert share_senders.unequal_packets(100) == 1
    assert share_senders.unequal_packets(10000) == 3
    assert round_counts([192, 384, 384], 3) == [6, 3, 3]


def test_windows_are_whole_rounds():
    experiment = find("share-senders")
    for size in ("quick", "full"):
        for point in experiment.points(parse(experiment, []), size):
            in_round = sum(round_counts(point.parameters["idt_ticks"]))
            assert point.spec["window_packets"] % in_round == 0
            assert point.spec["window_packets"] >= share_senders.WINDOW_PACKETS[size]
            assert point.spec["warm_up_packets"] % in_round == 0


BAD_SETTINGS = [
    ("a=1", "unknown parameter 'a' of share-senders"),
    ("message_bytes", "not of the form key=value"),
    ("=4", "not of the form key=value"),
    ("message_bytes=many", "message_bytes = 'many'"),
    ("message_bytes=0", "message_bytes = 0"),
    ("message_bytes=1.5", "message_bytes = 1.5"),
    ("idt_over_T=2", "idt_over_T = 2"),
    ("idt_over_T=[[2,", "idt_over_T = '[[2,'"),
    ("idt_over_T=" + "[" * 20000, "idt_over_T = '[[["),
    ("idt_over_T=[]", "idt_over_T = []"),
    ("idt_over_T=[[]]", "idt_over_T[0] is empty"),
    ("idt_over_T=[[2, NaN]]", "idt_over_T.0.1 = nan"),
    ("idt_over_T=[[2], [-1]]", "idt_over_T[1][0] = -1: an IDT is 1 to 1073741823 ticks"),
    ("idt_over_T=[[0.001]]", "idt_over_T[0][0] = 0.001: an IDT is 1 to 1073741823 ticks"),
    ("idt_over_T=[[1e9]]", "idt_over_T[0][0] = 1e+09: an IDT is 1 to 1073741823 ticks"),
    (
        "idt_over_T=[[0.1, 10000]]",
        "idt_over_T[0] = [0.1, 10000.0]: its pattern takes more than 2000 packets to repeat",
    ),
    (f"idt_over_T={[[2] * 17]}", "idt_over_T[0] has 17 flows: the rate control unit holds 16"),
]


@pytest.mark.parametrize(
    ("setting", "message"), BAD_SETTINGS, ids=[setting[:40] for setting, _ in BAD_SETTINGS]
)
def test_a_bad_setting_is_refused_in_one_line(setting, message):
    with pytest.raises(UserError) as caught:
        parse(find("share-senders"), [setting])
    text = str(caught.value)
    assert message in text and "\n" not in text and len(text) < 300


IDTS = "must be a list of 1 to 64 settings, each a list of 1 to 16 IDTs in units of T = 96 ticks"
REFUSALS = [
    ("share-senders", "message_bytes=0", "share-senders: message_bytes = 0: must be 1 to 262144"),
    (
        "share-senders",
        "message_bytes=many",
        "share-senders: message_bytes = 'many': must be a whole number, 1 to 262144",
    ),
    (
        "share-senders",
        "message_bytes=1.5",
        "share-senders: message_bytes = 1.5: must be a whole number, 1 to 262144",
    ),
    ("share-senders", "idt_over_T=2", f"share-senders: idt_over_T = 2: {IDTS}"),
    ("share-senders", "idt_over_T=[[true]]", f"share-senders: idt_over_T.0.0 = True: idt_over_T {IDTS}"),
    (
        "share-senders",
        "message_byte=1",
        "--set 'message_byte=1': unknown parameter 'message_byte' of share-senders (did you mean 'message_bytes'?); "
        "valid: idt_over_T, message_bytes",
    ),
    (
        "share-senders",
        "a=1",
        "--set 'a=1': unknown parameter 'a' of share-senders; valid: idt_over_T, message_bytes",
    ),
    ("share-senders", "a", "--set 'a': not of the form key=value; valid: idt_over_T, message_bytes"),
    ("network-load", "vls=17", "network-load: vls = 17: must be 1 to 16"),
    ("network-load", "vls=true", "network-load: vls = True: must be a whole number, 1 to 16"),
    (
        "network-load",
        "vl_selection=some",
        "network-load: vl_selection = 'some': must be one of same, any, routing",
    ),
    ("transfer", None, "transfer needs --set file=VALUE: a file of 1 byte to 16 MiB"),
]


@pytest.mark.parametrize(("name", "setting", "message"), REFUSALS, ids=[str(row[1]) for row in REFUSALS])
def test_a_refusal_says_what_would_be_right(name, setting, message):
    with pytest.raises(UserError) as caught:
        parse(find(name), [] if setting is None else [setting])
    assert str(caught.value) == message


def test_a_parameter_is_set_once():
    with pytest.raises(UserError, match="'message_bytes' is set twice"):
        parse(find("share-senders"), ["message_bytes=1", "message_bytes=2"])


def test_a_file_that_cannot_be_sent_is_refused(tmp_path):
    transfer = find("transfer")
    (tmp_path / "empty").touch()
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(16 * 2**20 + 1)
    for settings, message in [
        ([], "transfer needs --set file=VALUE"),
        ([f"file={tmp_path}/none"], "there is no such file"),
        ([f"file={tmp_path}"], "it is not a file"),
        ([f"file={tmp_path}/empty"], "it is empty"),
        ([f"file={tmp_path}/huge"], "16777217 bytes, at most 16777216"),
    ]:
        with pytest.raises(UserError) as caught:
            parse(transfer, settings)
        assert message in str(caught.value) and "\n" not in str(caught.value)


def test_within_is_relative_and_element_by_element():
    assert within(103.0, 100, 0.03) and not within(103.1, 100, 0.03)
    assert within([1.0, 2.019], [1, 2], 0.01) and not within([1.0, 2.021], [1, 2], 0.01)
    assert not within([1.0], [1, 1], 0.5)
    assert within(0.005, 0, 0.01) and not within(0.02, 0, 0.01)
    assert within(True, True, 0) and not within(1, True, 0) and not within(True, 1, 0)
    assert within("a", "a", 0) and not within(None, 1.0, 0.5) and not within(math.nan, 1.0, 0.5)


def test_results_do_not_depend_on_parallelism(fake, one_cluster, tmp_path):
    # The first points take longest, so that with two workers they end in another order.
    backend = fake.FakeBackend(delays=((2, 0.6), (3, 0.0)))
    two = run_fake(tmp_path / "two", backend, workers=2)
    one = run_fake(tmp_path / "one", fake.FakeBackend(), workers=1)
    assert two.exit_status == one.exit_status == 0
    for name in ("results.csv", "plot.png", "run.log"):
        assert (tmp_path / "two" / name).read_bytes() == (tmp_path / "one" / name).read_bytes()
    first, second = two.as_json(), one.as_json()
    assert first["points"] == second["points"] and first["claims"] == second["claims"]


def test_points_have_seeds_of_their_own_that_follow_from_the_run(fake, one_cluster, tmp_path):
    seeds = [point.seed for point in run_fake(tmp_path / "a", fake.FakeBackend(), seed=7).outcomes]
    assert len(set(seeds)) == 3
    assert seeds == [runner.point_seed(7, "share-senders", index) for index in range(3)]
    assert seeds != [runner.point_seed(8, "share-senders", index) for index in range(3)]


def test_several_seeds_are_runs_of_these_seeds(fake, one_cluster, tmp_path):
    both = run_fake(tmp_path / "both", fake.FakeBackend(), seed=7, seeds=2)
    seeds = [[one["seed"] for one in outcome.repetitions] for outcome in both.outcomes]
    assert seeds == [
        [runner.point_seed(seed, "share-senders", index) for seed in (7, 8)] for index in range(3)
    ]
    assert both.exit_status == 0 and len(both.outcomes) == 3
    shown = both.as_json()["points"][0]
    assert shown["intervals"]["share"] == [0.0, 0.0] and len(shown["repetitions"]) == 2


def test_a_share_out_of_its_proportion_fails_the_run(fake, one_cluster, tmp_path):
    report = run_fake(tmp_path / "run", fake.FakeBackend(skew=1.05))
    assert report.exit_status == 1
    assert [outcome.within for outcome in report.outcomes] == [False, False, False]
    assert not report.claims[0].holds


def test_an_unpublished_setting_is_judged_by_the_claim_alone(fake, one_cluster, tmp_path):
    report = run_fake(tmp_path / "run", fake.FakeBackend(), settings=("idt_over_T=[[2, 3]]",))
    assert report.exit_status == 0 and report.outcomes[0].within is None
    report = run_fake(tmp_path / "skewed", fake.FakeBackend(skew=1.05), settings=("idt_over_T=[[2, 3]]",))
    assert report.exit_status == 1


def test_a_failing_point_ends_the_run_with_its_error(fake, one_cluster, tmp_path):
    with pytest.raises(SimulationError, match="nothing has moved for 100000 cycles"):
        run_fake(tmp_path / "a", fake.FakeBackend(fault="simulation"))
    with pytest.raises(JobCrash, match="ZeroDivisionError: a bug"):
        run_fake(tmp_path / "b", fake.FakeBackend(fault="crash"))


def test_errors_cross_processes_whole():
    for error in (MissingTool("make", "sudo apt-get install make"), UserError("no")):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and str(copy) == str(error) and vars(copy) == vars(error)


def test_an_interrupted_run_leaves_no_process(fake, one_cluster, tmp_path):
    main_thread = threading.main_thread().ident

    def interrupt() -> None:
        while len(list(tmp_path.rglob("started"))) < 2:
            time.sleep(0.05)
        signal.pthread_kill(main_thread, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_fake(tmp_path / "run", fake.FakeBackend(fault="sleep"))
    assert time.monotonic() - started < 30
    assert multiprocessing.active_children() == []
