"""Work queues through host kit, firmware and card: the three ways of a descriptor, and refusals."""

import re
from pathlib import Path

import pytest
from lanikai.hdl.config import ConfigError
from lanikai.sim.build.card_clock import CardClock
from lanikai.sim.errors import SimulationError
from lanikai.sim.host.config import KitConfig, cycles
from lanikai.sim.run import run
from support.system.owner_cluster import CONFIG

pytestmark = pytest.mark.xdist_group("owners")
BURST, BURSTS = 6, 3


@pytest.fixture(scope="module")
def model():
    return CONFIG.build()


def point(model, name, spec, folder, seed=3, config=CONFIG):
    return run(
        model,
        *config.job(f"support.system.work_queue_points:{name}", spec),
        out_dir=folder,
        seed=seed,
    )


def test_three_ways_of_a_descriptor_give_the_same_bytes_at_different_costs(model, tmp_path):
    """A burst of messages is posted with one doorbell. On both cards there are three ways: every descriptor by a DMA of
    its own; one a burst, the others with the data before them; none."""
    found = {}
    for way in ("fetched", "tailgated", "shadow"):
        spec = {"descriptors": way, "bytes": 64, "burst": BURST, "bursts": BURSTS}
        found[way] = point(model, "messages", spec, tmp_path).value
        assert found[way]["dropped"] == 0
    assert len({values["sha256"] for values in found.values()}) == 1
    count = BURST * BURSTS
    assert found["fetched"]["operations"] == [{"descriptor": count, "data": count}] * 2
    assert (
        found["tailgated"]["operations"]
        == [{"descriptor": BURSTS, "list": count - BURSTS, "data": BURSTS}] * 2
    )
    assert found["shadow"]["operations"] == [{"data": count}] * 2
    # Lists of accesses: access by access it would be over 50 times a message. The set-up is among them.
    assert all(max(values["wakeups"]) <= 10 * count for values in found.values()), found
    # A shadow is two writes a descriptor, beside the doorbell and the consumer's index.
    more = found["shadow"]["page_writes"] - found["fetched"]["page_writes"]
    assert more == 2 * count and found["fetched"]["page_writes"] == found["tailgated"]["page_writes"]
    # The first message of a burst: a tailgated descriptor comes with its data, and delays it; a shadow spares the DMA.
    first = {way: values["latency_cycles"][BURST] for way, values in found.items()}
    assert first["shadow"] < first["fetched"] < first["tailgated"]
    # The last: descriptors that tailgate have been there before they were needed.
    last = {way: values["latency_cycles"][-1] for way, values in found.items()}
    assert last["shadow"] < last["tailgated"] < last["fetched"]


@pytest.mark.parametrize("seed", [1, 2])
def test_passing_over_quiet_cycles_changes_nothing(model, tmp_path, seed):
    """Completions that age, page tables and checked transfers come between silences. Times and registers are the same,
    though most cycles are passed over, and the main loop makes the firmware's accesses. Each card that has rested is
    byte for byte where it would have been."""
    spec = {"descriptors": "tailgated", "bytes": 64, "burst": 3, "bursts": 3, "silence_cycles": 9_000}
    # Cards with clocks of 16 bits rest until cycle 24_564: most of the run lies before.
    assert CardClock.of(CONFIG.nic).horizon_cycles == 24_564
    found = []
    for skip in (False, True):
        config = CONFIG.replace(skip_quiet=skip, access_lists=skip)
        job = config.job("support.system.work_queue_points:silent", spec | {"check": skip})
        found.append(run(model, *job, out_dir=tmp_path / str(skip), seed=seed).value)
    plain, skipping = found
    assert plain.pop("skipped") == 0
    assert skipping.pop("skipped") > 0.5 * plain["end"]
    assert skipping == plain


def test_a_process_is_told_what_it_may_not_and_others_go_on(model, tmp_path):
    """The refusals concern regions, channels and queues. Each has its own error or status, in these words."""
    found = point(model, "refusals", {}, tmp_path).value
    assert found["statuses"] == {
        "somebody else's region": "NOT_OWNER",
        "a region that is gone": "NO_REGION",
        "a write into a region that may only be read": "READ_ONLY",
        "not at a word": "MISALIGNED",
        "longer than a packet": "TOO_LONG",
        "longer than the buffer": "TOO_LONG",
        "the same region number registered anew": "NO_REGION",
    }
    assert found["errors"] == {
        "foreign channel": "node 0, owner 2: the card refused the send doorbell of channel 1: it is not this owner's",
        "foreign queue": "node 0, owner 2: the card refused index 0 of completion queue 0: it is not this owner's",
        "shadow": "node 0, owner 1: byte 0x400 of the shadow window: its part of the page ends at 0x400",
        "full": "node 0, channel 1: its queue to send has 2 of 2 descriptors free, 3 are asked for: wait for some to "
        "end",
        "none free": "node 0, channel 1: its queue to send has 0 of 2 descriptors free, 1 are asked for: wait for some "
        "to end",
        "outside": "9 bytes at 4089: the buffer has 4096 bytes",
        "route": "node 0 has no route to node 7; it reaches 1",
        "twice": "node 0: memory at 0x10001000, 100 bytes, is not registered: register it first, and deregister it "
        "once",
        "regions": "node 0: all 4 memory regions of the card are in use: deregister one",
        "stall": "node 0, owner 1: a completion queue that stalls can hold up the whole card: only for owners in the "
        "driver's may_stall",
        "entries": "a completion queue of 12 entries: a power of two, 2 to 32768",
        "old": "node 0, channel 1: descriptor 0: the queue has those from 7 to 8",
        "closed": "node 0, owner 1: the card refused the send doorbell of channel 1: it is not this owner's",
    }
    assert found["intact"] and found["afterwards"]


@pytest.mark.parametrize("descriptors", [pytest.param("fetched", marks=pytest.mark.full), "shadow"])
def test_what_is_refused_leaves_nothing_behind(descriptors, model, tmp_path):
    found = point(model, "mistakes", {"descriptors": descriptors}, tmp_path).value
    not_its_own = "is not its own: a channel's ends are told in queues of its own process"
    assert found.pop("errors") == {
        "second of two too long": "descriptor: bytes = 0x10000: 0 to 0xffff",
        "not connected": "node 0, owner 1: the card refused the send doorbell of channel 2: it is not this owner's",
        "channel": "node 0: channel 70000 of node 1: its card has 1 to 3",
        "driver's channel": "node 0: channel 0 of node 1: its card has 1 to 3",
        "closed": "node 0, owner 1: the card refused the send doorbell of channel 1: it is not this owner's",
        "foreign queue": f"node 0, owner 2: completion queue 0 {not_its_own}",
        "another host's queue": f"node 0, owner 2: completion queue 0 {not_its_own}",
        "foreign region": "node 0, owner 2: memory at 0x10000000 is registered for owner 1: only its own process may "
        "deregister it",
        "negative": "a buffer of -1 bytes: 0 or more",
    }
    words = [1, 2, 3, 4], [5, 6, 7, 8]
    heard = [[words[0], 0], [words[1], 1], [words[1], 2], [words[1], 0]]
    assert found == {"heard": heard, "free": [2, 2], "more": False, "pages": 0}


def test_a_process_that_never_stops_ringing_holds_up_nobody(model, tmp_path):
    found = point(model, "ringing", {"messages": 3}, tmp_path).value
    assert found["came"] == 3 and found["rings"] > 1000


def test_a_slow_consumer_gets_an_error_and_can_begin_anew(model, tmp_path):
    found = point(model, "overrun", {}, tmp_path).value
    assert found["error"] == (
        "node 0: completion queue 1 of 2 entries was overrun at entry 1: reap it more often, or make it longer"
    )
    assert found["seen_before"] == [0] and found["seen_after"] == [4]


def test_what_strangers_send_is_dropped_and_touches_nothing(model, tmp_path):
    """A message that named somebody else's channel once took its receiver's descriptor and was delivered."""
    assert point(model, "strangers", {}, tmp_path).value == {
        "untouched": True,
        "status": "OK",
        "bytes": "from B, a friend",
        "drops": {"stranger": 1, "misrouted": 1},
    }


def test_doorbells_are_taken_while_a_queue_stalls(model, tmp_path):
    """The consumer's index comes by the bus that a doorbell held whose queue was full: nothing ever moved again."""
    rings = 3 * CONFIG.nic.doorbell_queue_entries
    found = point(model, "slow_consumer", {"rings": rings}, tmp_path).value
    assert found["reaped"] == list(range(6)) and found["cycles"] < 30_000
    assert found["rang before"] == found["rang"] == rings
    assert found["waits"] == "node 0 waits for COMPLETION_POST: a completion queue that stalls is full"


def test_firmware_that_polls_for_ever_is_found(tmp_path):
    """Its looks at a register are no progress."""
    config = CONFIG.replace(delivery_cycles=50_000)
    with pytest.raises(SimulationError) as error:
        point(config.build(), "never_looks", {}, tmp_path, config=config)
    said = re.sub(r"\d{4,}", "N", str(error.value))
    assert "nothing has been delivered for N cycles, though messages wait (now cycle N)" in said
    assert "node 0 waits for COMPLETION_POST: a completion queue that stalls is full" in said


@pytest.mark.parametrize("way", ["wait", "spin"])
def test_a_ring_that_the_bus_refuses_wakes_its_process_with_an_error(way, model, tmp_path):
    assert point(model, "broken_ring", {"way": way}, tmp_path).value == {
        "error": "node 0: completion queue 0 is dead at entry 0: the bus answered the card's write into its ring with "
        "an error; make it anew",
        "goes on": "OK",
        "again": "OK",
    }


def test_every_descriptor_is_sent_once_though_it_is_rung_while_another_is_sent(model, tmp_path):
    found = point(model, "rung_while_sending", {"messages": 12}, tmp_path).value
    assert found == {"sent": 12, "posted": 12}


def test_a_queue_that_lives_is_made_anew_without_an_entry_of_the_past(model, tmp_path):
    """Entries that were written between the clearing of its ring and the set-up once stood in the new queue."""
    waits = [1, 200, 400, 600, 800, 1200]
    for i, (late, seen) in enumerate(point(model, "remake", {"waits": waits}, tmp_path).value):
        first = 6 * i
        assert late == list(range(first + 3 - len(late), first + 3))
        assert seen == list(range(first + 3, first + 6))


def test_both_ways_at_once_neither_card_waits_for_the_other(model, tmp_path):
    """Two cards that send to each other without a pause, each with one buffer to receive into. Access by access, or in
    lists, the last message comes in the same cycle."""
    spec, found = {"messages": 12, "bytes": 128}, []
    for lists in (False, True):
        config = CONFIG.replace(access_lists=lists)
        found.append(point(model, "both_ways", spec, tmp_path / str(lists), config=config).value)
    assert found[0]["came"] == [spec["messages"]] * 2
    assert found[0] == found[1]


def test_calls_cost_what_the_parameters_say(model, tmp_path):
    """The calls cost this beside the words with the card, whose time is the bus's. They take a few cycles more or less,
    as they meet its turns."""
    kit, nic, slack = KitConfig(), CONFIG.nic, 4
    free = dict.fromkeys(KitConfig.model_fields, 0)
    found, bare = (point(model, "costs", {"kit": values}, tmp_path).value for values in ({}, free))
    for pages in (1, 5):
        for call, page_ns in (("register", kit.register_page_ns), ("deregister", kit.deregister_page_ns)):
            cost = cycles(kit.system_call_ns + kit.register_ns + pages * page_ns, nic)
            assert abs(found[f"{call} {pages}"] - bare[f"{call} {pages}"] - cost) <= slack
    # A sleeper is woken by an interrupt; both have the miss and the entry to pay. What is done before the message
    # comes, the call into the kernel among it, is no part of it.
    seen = cycles(kit.miss_ns, nic) + cycles(kit.entry_ns, nic)
    slept = cycles(kit.interrupt_ns, nic) + cycles(kit.wake_ns, nic)
    for way, cost in (("spin", seen), ("wait", seen + slept)):
        assert abs(found[f"receive by {way}"] - bare[f"receive by {way}"] - cost) <= 4 * slack, (
            way,
            found,
            bare,
        )


def test_the_example_of_the_page_runs(model, tmp_path, monkeypatch):
    page = Path(__file__).parents[2] / "docs" / "host-kit.md"
    (example,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    (tmp_path / "hello.py").write_text(example)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = run(model, *CONFIG.job("hello:main", {"text": "a word"}), out_dir=tmp_path, seed=1)
    assert found.value == "a word"


def test_a_driver_without_firmware_says_so(model, tmp_path):
    with pytest.raises(SimulationError) as error:
        point(model, "no_firmware", {}, tmp_path)
    assert str(error.value).startswith(
        "KitError: node 0: the card's firmware hears no doorbell after 51200 cycles: start a WorkQueueProgram on it"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"regions": 0}, "NicConfig.regions = 0: at least 1 for work queues"),
        (
            {"receive_doorbells": "none"},
            "NicConfig: work queues need doorbell = 'queue' and receive_doorbells = 'merged'",
        ),
        (
            {"shadow_windows": False},
            "NicConfig.shadow_windows = False: descriptors = 'shadow' needs them",
        ),
        (
            {"sram_bytes": 2048},
            "NicConfig.sram_bytes = 2048: work queues need 4720 bytes; fewer channels, or owners with shadow windows, "
            "would fit",
        ),
    ],
)
def test_a_card_that_lacks_something_is_named(changes, message):
    from lanikai.firmware.work_queue.config import WorkQueueConfig
    from lanikai.firmware.work_queue.layout import Layout

    with pytest.raises(ConfigError) as error:
        Layout(CONFIG.nic.replace(**changes), WorkQueueConfig(descriptors="shadow"))
    assert str(error.value) == message
