"""Mixed traffic on simulated routers and adapters: all of it arrives, under each control; and the speed aimed at."""

import resource

import pytest
from lanikai.hdl.config import HcaConfig, LinkConfig, RouterConfig, preset
from lanikai.hdl.network import mesh
from lanikai.sim.experiments.qos.mix import ADMISSION, CLASSES, FRAME_CYCLES, Mix, mixed_network
from lanikai.sim.machine import ONE_THREAD
from lanikai.sim.run import run
from lanikai.sim.systems.adapters.config import AdapterNetworkConfig

pytestmark = pytest.mark.full

LINK = LinkConfig(flit_bits=128, vls=16, hop_bits=3)
HCA = preset(HcaConfig, "tiny").replace(
    link=LINK,
    packet_flits=10,
    classes=len(CLASSES),
    class_queue_entries=64,
    completion_queues=8,
    queue_pairs=8,
    translation_entries=16,
    vl_table_entries=16,
)
ROUTER = RouterConfig(
    link=LINK,
    ports=6,
    input_buffer_flits=4,
    output_buffer_flits=4,
    management=True,
    vl_arbiter="table_fast",
    vl_table_entries=16,
    activity_counters=True,
)
MIX = Mix(
    load=0.4,
    packet_flits=10,
    stream_units=(50,),
    frame_cycles=2_000,
    control_period_cycles=4_000,
    admission_config=ADMISSION.replace(real_time_vls=(0, 1, 2), table_entries=16),
    warmup_cycles=0,
    window_cycles=20_000,
)


@pytest.fixture
def play(tmp_path):
    def played(mix, seed=1):
        config = AdapterNetworkConfig.on(mesh(2, 2, router=ROUTER), HCA)
        entry, job = config.job("lanikai.sim.experiments.qos.mixed:measure", mix.spec())
        return run(config.build(), entry, job, out_dir=tmp_path, seed=seed, threads=ONE_THREAD).value

    return played


def test_all_classes_arrive_at_their_rates_and_the_same_seed_repeats(play):
    found = play(MIX)
    print({name: value for name, value in found.items() if name != "intervals"})
    assert found["failed"] == found["unanswered"] == found["refused"] == 0
    for name, one in found["classes"].items():
        # Without a warm-up every message was born in the window: none is lost, and none comes twice.
        assert one["born"] == one["arrived"] + one["under_way"] + one["waiting"], name
        assert 0 <= one["under_way"] < one["born"] / 10 and one["waiting"] == one["dropped"] == 0, name
        assert one["longest_cycles"] >= one["latency_cycles"] / one["arrived"] > 0
        assert one["since_birth_cycles"] >= one["latency_cycles"]
    # Ten a host in 4,000 cycles, four hosts.
    assert found["classes"]["control"]["born"] == pytest.approx(200, rel=0.3)
    assert found["frames"] == pytest.approx(found["streams"] * 9, abs=found["streams"])
    assert play(MIX) == found


def test_samples_cover_the_window(play):
    found = play(MIX.replace(interval_cycles=4_000))
    assert len(found["intervals"]) == 5 and all(min(one) > 0 for one in found["intervals"])


def test_admission_refuses_what_links_have_no_room_for(play):
    """Streams of a quarter of a link: both ways of a host's link hold four of them, and it asks for three and is asked
    for three."""
    mix = MIX.replace(load=0.9, stream_units=(255,))
    found, all_of_them = play(mix), play(mix.replace(admission=False))
    assert all_of_them["refused"] == 0 < found["refused"] and set(found["refusals"]) == {"LINK"}
    assert found["streams"] == all_of_them["streams"]
    sent, sent_by_all = (one["classes"]["real_time"]["born_flits"] for one in (found, all_of_them))
    assert sent < sent_by_all


def test_without_credits_real_time_is_dropped_and_posted_again_and_best_effort_waits(play):
    """Bursts of whole frames, and a few credits."""
    mix = MIX.replace(regulator=False, admission=False)
    free = play(mix)
    few = play(mix.replace(credits="global", buffer_messages=24, credit_count=1, retry_cycles=100))
    assert few["failed"] == free["failed"] == 0
    assert few["classes"]["real_time"]["dropped"] > free["classes"]["real_time"]["dropped"] == 0
    for name in ("real_time", "best_effort"):
        waits = [
            (one["classes"][name]["since_birth_cycles"] - one["classes"][name]["latency_cycles"])
            / one["classes"][name]["arrived"]
            for one in (free, few)
        ]
        assert waits[1] > waits[0], name
        # What was dropped is kept and sent later.
        for result in (free, few):
            one = result["classes"][name]
            assert one["born"] == one["arrived"] + one["under_way"] + one["waiting"], name


def test_a_frames_time_of_video_on_eight_ports_takes_less_than_five_minutes(tmp_path):
    """33 ms at a load of 0.8 without controls: 416,667 cycles. Processor time, as other runs share the machine."""
    mix = Mix(
        load=0.8,
        admission=False,
        control_period_cycles=FRAME_CYCLES,
        warmup_cycles=0,
        window_cycles=FRAME_CYCLES,
    )
    config = mixed_network("router8")
    model = config.build()
    entry, job = config.job("lanikai.sim.experiments.qos.mixed:measure", mix.spec())
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = run(model, entry, job, out_dir=tmp_path, seed=1, threads=ONE_THREAD).value
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{seconds:.0f} s of processor time, {found['setup_cycles']} cycles of setting up")
    assert found["failed"] == 0 < found["classes"]["real_time"]["arrived"]
    assert 0 < seconds < 300
