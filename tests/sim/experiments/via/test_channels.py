"""Experiments on channels: points, results by hand, and claims that fail when a curve is another one."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from lanikai.firmware.via.parallel.loop import messages_begun
from lanikai.sim.experiments.framework.base import Outcome
from lanikai.sim.experiments.via.admission import ViaAdmission, message_ns
from lanikai.sim.experiments.via.cards import NAMES, via_card, via_program
from lanikai.sim.experiments.via.cbr import ViaCbr, late_part_error
from lanikai.sim.experiments.via.channels import BEST_EFFORT, class_value
from lanikai.sim.experiments.via.hns import ViaHns
from lanikai.sim.experiments.via.qos_load import ViaQosLoad, load_of
from lanikai.sim.experiments.via.schedulers import ViaSchedulers, bound_us, catching_up_us
from lanikai.sim.experiments.via.vbr import ViaVbr
from lanikai.sim.experiments.via.workloads import Channel, messages
from lanikai.sim.host.via.admission import via_capacity
from matplotlib.figure import Figure

CARRIES_MB_PER_S = {"svia": 62.0, "pvia": 99.0, "qosvia": 129.0}


def carried(
    point, capacity_mb_per_s=None, *, delay_us=100.0, wobble_us=0.0, best_effort_us=200.0, starves=()
):
    """A run in which a card of some capacity stretches the times of all messages alike."""
    spec = point.spec
    capacity = capacity_mb_per_s or CARRIES_MB_PER_S[point.parameters["design"]]
    stretch = max(1.0, point.parameters["load_mb_per_s"] / capacity)
    rng = random.Random(1)
    channels = []
    for one in spec["channels"]:
        channel = Channel(**one)
        due = messages(channel, until_us=spec["until_us"], rng=rng, frames=[1500, 9000, 500])
        base = best_effort_us if channel.kind == BEST_EFFORT else delay_us
        received, last = [], 0.0
        for number, (at, _) in enumerate(due):
            last = max(last, at * stretch + base + wobble_us * (number % 2))
            received.append(last)
        if channel.kind in starves:
            received = []
        channels.append(
            {
                "due_us": [at for at, _ in due],
                "received_us": [at for at in received if at < spec["until_us"]],
                "bytes": [size for _, size in due],
            }
        )
    return {"end_us": spec["until_us"], "channels": channels, "backlog": 0}


def run(experiment, measure, size="quick", keep=lambda point: True):
    parameters = experiment.Parameters()
    outcomes = [
        Outcome(
            point=point,
            results=experiment.results(parameters, point, measure(point)),
            seed=1,
            cycles=1,
            wall_seconds=1.0,
        )
        for point in experiment.points(parameters, size)
        if keep(point)
    ]
    figure = Figure()
    experiment.plot(parameters, outcomes, figure)
    assert len(figure.axes) == 2
    return outcomes, [claim.holds for claim in experiment.claims(parameters, outcomes)]


def test_results_by_hand():
    experiment = ViaQosLoad()
    point = experiment.points(experiment.Parameters(), "quick")[0]
    assert point.parameters["class"] == ["2 MB/s", "8 MB/s", BEST_EFFORT] and point.parameters["nodes"] == 5
    found = experiment.results(
        experiment.Parameters(),
        point,
        {
            "end_us": 14_000.0,
            "backlog": 0,
            "channels": [
                # Due each 2048; the one before the warm-up is not judged. Late by 512 once, and early by it again.
                {
                    "due_us": [100, 2148, 4196, 6244],
                    "received_us": [200, 2248, 4808, 6344],
                    "bytes": [4096] * 4,
                },
                # Starved from the start, 11,444 us long: for an interval of 512.
                {"due_us": [2556, 3068], "received_us": [], "bytes": [4096] * 2},
                {"due_us": [2000, 3000], "received_us": [2300, 3500], "bytes": [4096] * 2},
            ],
        },
    )
    assert found["theta"] == [pytest.approx(512 / 2 / 2048), pytest.approx((11444 - 512) / 512), None]
    assert found["sustained"] == [0, pytest.approx((11444 - 512) / 512), None]
    assert found["latency_us"] == [pytest.approx((100 + 612 + 100) / 3), None, 400]
    assert found["longest_us"] == [612, None, 500]
    assert found["bandwidth_mb_per_s"] == pytest.approx([3 * 4096 / 12000, 0, 2 * 4096 / 12000])
    # Seven messages were due after the warm-up.
    assert found["injected_mb_per_s"] == pytest.approx(7 * 4096 / 12000)


def test_qos_load_claims():
    # The made-up cards have just the published capacities; loads come in steps, so the onset is a step above.
    outcomes, verdicts = run(ViaQosLoad(), carried)
    assert verdicts[:4] == [True] * 4
    assert {one.point.parameters["setup"] for one in outcomes} == {"1 to 4"}
    experiment = ViaQosLoad()

    def swapped(point):
        other = {"svia": 62, "pvia": 129, "qosvia": 99}
        return carried(point, other[point.parameters["design"]])

    assert run(experiment, swapped)[1][:4] == [False, True, False, False]
    assert run(experiment, lambda point: carried(point, 1000))[1][:4] == [False] * 4


def test_qos_load_best_effort():
    def measure(point):
        slower = {"svia": 200, "pvia": 200, "qosvia": 250}[point.parameters["design"]]
        over = point.parameters["design"] == "svia" and point.parameters["load_mb_per_s"] > 60
        return carried(point, best_effort_us=5000 if over else slower)

    assert run(ViaQosLoad(), measure)[1][4:] == [True, True]
    assert run(ViaQosLoad(), lambda point: carried(point, 1000))[1][4:] == [False, False]


def test_qos_load_setups_and_steps():
    experiment = ViaQosLoad()
    points = experiment.points(experiment.Parameters(), "full")
    assert {one.parameters["setup"] for one in points} == {"1 to 4", "4 to 1", "both ways"}
    for setup, lowest in (("1 to 4", 43), ("4 to 1", 43), ("both ways", 35)):
        steps = sorted(
            {one.parameters["load_mb_per_s"] for one in points if one.parameters["setup"] == setup}
        )
        assert steps[0] == lowest and all(b - a <= 0.1 * 62 for a, b in pairwise(steps) if b < 140)
    both = next(one for one in points if one.parameters["setup"] == "both ways")
    assert both.parameters["nodes"] == 5 and both.parameters["class_channels"][0] == 2
    assert load_of((1, 1, 1)) == 75
    # The same messages under all designs.
    assert len({one.workload for one in points}) * 3 == len(points)


def test_cbr_claims():
    jittery = {"svia": 60.0, "pvia": 40.0, "qosvia": 40.0}

    def measure(point):
        return carried(point, wobble_us=jittery[point.parameters["design"]])

    # Nothing tells PVIA's part of late packets from QoSVIA's: the last claim is not judged.
    assert run(ViaCbr(), measure)[1] == [True, True, None]
    assert run(ViaCbr(), lambda point: carried(point, 5.0))[1][0] is False
    assert run(ViaCbr(), lambda point: carried(point, wobble_us=40))[1] == [True, False, None]
    jittery["qosvia"] = 0.0
    assert run(ViaCbr(), measure)[1] == [True, True, True]

    def late(point):
        return carried(point, wobble_us=60.0 * (point.parameters["design"] != "pvia"))

    assert run(ViaCbr(), late)[1][2] is False


def test_chance_of_late_packets():
    experiment = ViaCbr()
    point = experiment.points(experiment.Parameters(), "quick")[0]

    def error(parts, judged):
        found = {"late_part": parts, "judged": judged}
        return late_part_error(Outcome(point=point, results=found, seed=1, cycles=0, wall_seconds=0))

    assert error([0.5], [98]) == pytest.approx(0.05)
    assert error([0.0], [98]) == pytest.approx((0.01 * 0.99 / 100) ** 0.5)
    assert error([0.5, 0.5, None], [98, 98, 5]) == pytest.approx(0.05 / 2**0.5)
    assert error([None], [0]) == 0


def test_vbr_claims():
    keep = lambda point: point.parameters["load_mb_per_s"] > 60  # noqa: E731

    def measure(point, svia=65, pvia=80, qosvia=95):
        return carried(point, {"svia": svia, "pvia": pvia, "qosvia": qosvia}[point.parameters["design"]])

    assert run(ViaVbr(), measure, keep=keep)[1] == [True]
    assert run(ViaVbr(), lambda point: measure(point, qosvia=80), keep=keep)[1] == [False]


def test_hns_claims():
    def measure(point, without=(100, 50), with_queue=(80, 40)):
        delay, wobble = with_queue if point.parameters["send_queue"] else without
        return carried(point, 1000, delay_us=delay, wobble_us=wobble)

    assert run(ViaHns(), measure)[1] == [True, True]
    assert run(ViaHns(), lambda point: measure(point, (100, 50), (110, 40)))[1] == [False, True]
    assert run(ViaHns(), lambda point: measure(point, (100, 50), (80, 60)))[1] == [True, False]


def scheduled(point, punished_us=6000.0, others_us=150.0, starves=("virtual_clock",)):
    """Under VirtualClock no message of A that is due after the others' begin is received for `punished_us`."""
    order = point.parameters["order"]
    found = carried(
        point,
        1000,
        delay_us=others_us,
        best_effort_us=others_us,
        starves=(BEST_EFFORT,) if order in starves else (),
    )
    if order == "virtual_clock":
        first, begins = found["channels"][0], point.spec["warm_up_us"]
        first["received_us"] = [
            max(at, begins + punished_us) if due >= begins else at
            for due, at in zip(first["due_us"], first["received_us"], strict=False)
        ]
    return found


def test_schedulers_claims():
    assert run(ViaSchedulers(), scheduled)[1] == [True] * 5
    assert run(ViaSchedulers(), lambda point: scheduled(point, 100))[1][:2] == [False, False]
    # One for whom the others wait as long is not punished more than they.
    assert run(ViaSchedulers(), lambda point: scheduled(point, others_us=1600))[1][0] is False
    assert run(ViaSchedulers(), lambda point: scheduled(point, starves=()))[1][2:4] == [False, True]
    assert (
        run(ViaSchedulers(), lambda point: scheduled(point, starves=("wf2q", "virtual_clock")))[1][3] is False
    )
    assert run(ViaSchedulers(), lambda point: scheduled(point, others_us=9000))[1][4] is False


def test_the_time_in_which_stamps_catch_up():
    # A's stamps are 6000 us ahead; the others' pass them three times as fast, in steps of 512 us.
    assert catching_up_us(6000) == pytest.approx(2000 - 2 * 512 / 3 - 4096 / 24)
    assert catching_up_us(20000) > 3 * catching_up_us(6000)


def test_bounds_of_schedulers():
    experiment = ViaSchedulers()
    point = experiment.points(experiment.Parameters(), "quick")[-1]
    best_effort = Channel(**point.spec["channels"][-1])
    assert bound_us("virtual_clock", best_effort, ahead_bytes=4096) is None
    wf2q, deficit = (bound_us(order, best_effort, ahead_bytes=4096) for order in ("wf2q", "deficit"))
    assert wf2q is not None and deficit is not None
    # Two messages at 8 MB/s are a millisecond; then come the message in service and the chain.
    assert 1000 < wf2q < 2500 and deficit > 500
    more = bound_us("wf2q", best_effort, ahead_bytes=8192)
    assert more is not None and more > wf2q
    # The chain has a place for each message that the scheduler can have chosen before, with a packet buffer or without.
    program, times = via_program("qosvia"), via_capacity("qosvia")
    alone = wf2q - (2 * 512 + float(times.send.message_ns(4096)) / 1000)
    chain = messages_begun(program) * times.send.message_ns(4096) + times.receive.message_ns(4096)
    assert messages_begun(program) > program.send_buffers
    assert alone == pytest.approx(float(chain) / 1000, abs=2)


@pytest.mark.parametrize("experiment", [ViaAdmission, ViaCbr, ViaHns, ViaQosLoad, ViaSchedulers, ViaVbr])
def test_no_claim_is_judged_on_nothing(experiment):
    made = experiment()
    assert {claim.holds for claim in made.claims(made.Parameters(), [])} == {None}


def test_cards():
    assert [via_card(name).host_dma_queue_order for name in NAMES] == ["arrival", "arrival", "timestamp"]
    assert via_card("qosvia", send_queue=True).send_queue_order == "timestamp"
    assert via_program("qosvia").order == "virtual_clock" and via_program("qosvia", "wf2q").order == "wf2q"
    assert class_value.__doc__


def admitted(point, *, times=1.0, refuse=5, keeps=True):
    """Cards as admission reckons them, or `times` as slow; the last `refuse` channels are refused."""
    setup = point.parameters["setup"]
    if setup in ("send", "receive"):
        step = times * message_ns(point) / 1000
        received = [step * number for number in range(1, int(point.spec["until_us"] / step))]
        one = {"due_us": [0.0] * len(received), "received_us": received, "bytes": [1] * len(received)}
        empty = {"due_us": [], "received_us": [], "bytes": []}
        return {
            "end_us": point.spec["until_us"],
            "channels": [one] + [empty] * (len(point.spec["channels"]) - 1),
            "backlog": 0,
        }
    found = carried(point, 1000 if keeps == (setup == "admission") else 90)
    if setup == "admission":
        for one in found["channels"][16 - refuse : 16]:
            one["refused"] = "no room"
    return found


def test_admission_claims():
    assert run(ViaAdmission(), admitted)[1] == [True, True, True]
    assert run(ViaAdmission(), lambda point: admitted(point, times=1.2))[1] == [False, True, True]
    assert run(ViaAdmission(), lambda point: admitted(point, refuse=0))[1] == [True, False, True]
    assert run(ViaAdmission(), lambda point: admitted(point, keeps=False))[1] == [True, False, False]
