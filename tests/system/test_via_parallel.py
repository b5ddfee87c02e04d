"""VIA's parallel designs from end to end on small cards: order, contents and bounded waits at saturation."""

from functools import cache

import pytest
from lanikai.sim.experiments.via.cards import via_cluster
from lanikai.sim.run import run
from support.system.owner_cluster import CONFIG as OWNERS
from support.system.via_clusters import BASE, TWO

pytestmark = pytest.mark.xdist_group("owners")
CONFIG = OWNERS.replace(firmware="via")
PARALLEL = {"design": "parallel", "queue_entries": 4, "send_buffers": 2, "receive_buffers": 2}
DESIGNS = {
    "sequential": {"queue_entries": 4},
    "parallel": PARALLEL,
    "two buffers": PARALLEL,
    "one buffer": PARALLEL | {"send_buffers": 1, "receive_buffers": 1},
    "stamped": PARALLEL | {"send_buffers": 1, "order": "virtual_clock"},
    "tailgated": PARALLEL | {"descriptors": "tailgated"},
    "shadow": PARALLEL | {"descriptors": "shadow"},
}


@pytest.fixture(scope="module")
def model():
    return CONFIG.build()


def point(model, name, spec, folder, seed=3, config=CONFIG):
    job = config.job(f"support.system.via_parallel_points:{name}", spec)
    return run(model, *job, out_dir=folder, seed=seed).value


SATURATION = {"level": 0, "vis": 2, "count": 12, "sizes": [64, 300, 0, 112], "vtick": 40}
OVERLAP = {"level": 0, "vis": 2, "count": 4, "sizes": [112], "stages": True}
BURSTS = {"burst": 2, "bytes": 64, "bursts": 3}
_POINTS = "via_parallel_points"
_CROWD = {"saturation": (f"{_POINTS}:both_ways", SATURATION), "overtake": (f"{_POINTS}:overtake", {})}
PARTS = {
    "sequential": {"overlap": (f"{_POINTS}:both_ways", OVERLAP)},
    "parallel": {"overlap": (f"{_POINTS}:both_ways", OVERLAP), "bursts": (f"{_POINTS}:bursts", BURSTS)},
    "two buffers": {"saturation": (f"{_POINTS}:both_ways", SATURATION)},
    "one buffer": _CROWD,
    "stamped": _CROWD,
    **{name: {"bursts": (f"{_POINTS}:bursts", BURSTS)} for name in ("tailgated", "shadow")},
}
"""The parts of each run, by the name of its design."""


@pytest.fixture(scope="module")
def parts(model, tmp_path_factory):
    """The parts of a run, by its name: each is run once, whichever test asks for it first."""

    @cache
    def found(design):
        spec = {"config": DESIGNS[design], "parts": PARTS[design]}
        return run(
            model,
            *CONFIG.job("support.system.via_parts:parts", spec),
            out_dir=tmp_path_factory.mktemp("parts"),
            seed=3,
        ).value

    return found


@pytest.mark.parametrize(
    "design", [pytest.param("two buffers", marks=pytest.mark.full), "one buffer", "stamped"]
)
def test_two_cards_that_send_to_each_other_at_saturation_lose_nothing(design, parts):
    """Messages of none, one and several packets, by two VIs each way at once. All come in order, and the program rests
    when they have: a pool that is empty makes a message wait, and nothing stands for ever."""
    found = parts(design)["saturation"]
    assert found["wrong"] == [] and found["drops"] == [{}, {}]
    assert found["sent"] == [24, 24] and found["pending"] == [0, 0]


def test_a_message_with_a_rate_goes_before_those_without_that_wait(parts):
    """By arrival messages go in the order of their doorbells, as thesis 5.3.3 has it of PVIA: at the tail.

    VIs once had turns, a message each. By stamps the one with a rate overtakes all that have not begun to be sent.
    """
    assert parts("one buffer")["overtake"] == [0, 0, 1, 1, 2]
    stamped = parts("stamped")["overtake"]
    assert stamped[:2] == [0, 2] and sorted(stamped[2:]) == [0, 1, 1]


@pytest.mark.full
@pytest.mark.parametrize("level", [1, 2])
def test_reliable_messages_come_and_are_told_in_order(level, model, tmp_path):
    """Acknowledgements go out between messages, by the same buffers."""
    spec = {"config": PARALLEL, "level": level, "vis": 1, "count": 8, "sizes": [300, 64, 0]}
    found = point(model, "both_ways", spec, tmp_path)
    assert found["wrong"] == [] and found["drops"] == [{}, {}]
    assert found["sent"] == [8, 8] and found["pending"] == [0, 0]


@pytest.mark.full
def test_lists_carried_out_by_python_change_nothing(model, tmp_path):
    spec = {
        "config": PARALLEL | {"order": "virtual_clock"},
        "level": 1,
        "vis": 2,
        "count": 6,
        "sizes": [64, 300],
        "vtick": 40,
    }
    spec["stages"] = True
    by_python = CONFIG.replace(access_lists=False)
    assert point(model, "both_ways", spec, tmp_path / "a") == point(
        model, "both_ways", spec, tmp_path / "b", config=by_python
    )


def test_messages_overlap_where_the_sequential_design_has_one_at_a_time(parts):
    """The same messages, sooner: the stages of two messages overlap, and one after the other they never do."""
    found = {name: parts(name)["overlap"] for name in ("sequential", "parallel")}
    assert [one["wrong"] for one in found.values()] == [[], []]
    overlaps = {name: [overlapping(stages) for stages in one["stages"]] for name, one in found.items()}
    assert overlaps["sequential"] == [0, 0]
    assert min(overlaps["parallel"]) > 4


def overlapping(messages):
    """Pairs of spans of different messages to send, one of which begins while the other is under way.

    A receiving processor's work counts for itself: packets are taken in while one goes out.
    """
    spans = sorted(
        (begin, end, i)
        for i, (_, receive, _, found) in enumerate(messages)
        if not receive
        for stage, begin, end in found
        if begin < end and stage > 2  # 1 and 2 are waits for the firmware
    )
    return sum(
        other[2] != one[2] and other[0] < one[1]
        for place, one in enumerate(spans)
        for other in spans[place + 1 :]
    )


def test_a_descriptor_comes_by_itself_behind_data_or_not_at_all(parts):
    """In bursts of two half of the messages tailgate (4.3.9). A shadow spares all of these DMAs (4.3.11)."""
    found = {name: parts(name)["bursts"] for name in ("parallel", "tailgated", "shadow")}
    for one in found.values():
        assert one["same"] and one["drops"] == [{}, {}]
    assert found["parallel"]["own"] == [[True] * 6, [True] * 6]
    assert found["tailgated"]["own"][0] == [True, False] * 3
    assert found["shadow"]["own"] == [[False] * 6, [False] * 6]
    assert found["shadow"]["cycles"][1] < found["tailgated"]["cycles"][1] < found["parallel"]["cycles"][1]


@pytest.mark.full
@pytest.mark.parametrize("descriptors", ["fetched", "tailgated", "shadow"])
def test_two_processors_send_and_receive_at_once(descriptors, tmp_path):
    """One serves what is sent, the other what comes, with hardware queues before all engines. Sooner than one."""
    config = PARALLEL | {"descriptors": descriptors}
    spec = {"config": config, "level": 1, "vis": 2, "count": 12, "sizes": [64, 300, 0, 112]}
    two = point(TWO.build(), "both_ways", spec, tmp_path, config=TWO)
    assert two["wrong"] == [] and two["drops"] == [{}, {}]
    assert two["sent"] == [24, 24] and two["pending"] == [0, 0]


@pytest.mark.full
@pytest.mark.parametrize("design", ["sequential", "parallel"])
def test_polled_doorbells_and_queues_in_software(design, tmp_path):
    """Base, and Base with overlap: no queue of the card's hardware."""
    config = {"queue_entries": 4} if design == "sequential" else PARALLEL
    spec = {"config": config, "level": 0, "vis": 2, "count": 12, "sizes": [64, 300, 0, 112]}
    found = point(BASE.build(), "both_ways", spec, tmp_path, config=BASE)
    assert found["wrong"] == [] and found["drops"] == [{}, {}]
    assert found["sent"] == [24, 24] and found["pending"] == [0, 0]


@pytest.mark.full
def test_508_declared_vis_cost_no_more_time_a_message_than_4(tmp_path):
    """Processor time within 20%, and simulated time to the cycle: nothing but the agent's set-up knows of them."""
    config = via_cluster("pvia", nodes=2)
    spec = {"config": PARALLEL, "declared": [4, 508], "messages": 60}
    found = point(config.build(), "declared", spec, tmp_path, config=config)
    (few, few_cycles), (many, many_cycles) = found["4"], found["508"]
    assert many <= 1.2 * few and abs(many_cycles - few_cycles) <= 0.02 * few_cycles, found
