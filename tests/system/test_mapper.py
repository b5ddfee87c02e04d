"""The mapper on clusters of RTL: what routers do with its packets, maps, changes while data flow."""

import pytest
from lanikai.sim.run import run
from support.system.mapper_points import figure_3, small_network


def play(tmp_path, config, entry, spec, *, seed=7):
    entry, job = config.job(f"support.system.mapper_points:{entry}", spec)
    return run(config.build(), entry, job, out_dir=tmp_path / entry.split(":")[-1], seed=seed).value


def test_the_rules_that_plain_networks_follow(tmp_path):
    """U-turns go. What has no way is dropped whole. Hops that are left stay in the header, and zeros come in."""
    found = play(tmp_path, small_network(), "rules", {})
    assert found == {
        "to the port it came by": [[[0, 0xF]], 0],
        "back over a cable": [[[1, 0xF]], 0],
        "round a loop": [[[1, 0xF]], 0],
        "to a port without a cable": [[], 1],
        "to a port that is not there": [[], 1],
        "with hops left at a host": [[[1, 0xF23]], 0],
        "without hops in a switch": [[[0, 0]], 0],
    }


def test_maps_and_changes(tmp_path):
    """The map is the network's. It is made again when a cable goes and comes, and two switches with a host, while data
    flow. Then the mapper dies."""
    spec = {
        "config": dict(
            candidates=(0, 1), timeout_us=50, attempts=1, watch_us=100, lease_us=20_000, drain_us=100
        ),
        "cuts": [(0, 1), (4, 4)],
    }
    found = play(tmp_path, small_network(), "changes", spec)
    print(found)
    assert found["during"] > 100 and found["flows on"] > 10 and found["came"] > 0.8 * found["during"]
    assert found["maps"][0] >= 5 and found["maps"][1] >= 1


def test_the_map_over_drivers_and_firmware(tmp_path):
    """Probes and routes go through the driver's mailbox, the firmware and the ring of notices."""
    spec = {
        "config": dict(timeout_us=300, attempts=1, watch_us=1000, drain_us=100),
        "rests": 4000,
        "forget": True,
    }
    found = play(tmp_path, small_network().replace(firmware="am"), "over_drivers", spec)
    print(found)
    assert found["given"]
    assert found["reached"] == [[there for there in range(5) if there != node] for node in range(5)]


@pytest.mark.full
def test_forty_switches_in_under_a_minute(tmp_path):
    """The network of figure 3 is mapped exactly, through 40 routers and 92 cards of RTL.

    The minute is of processor time, start of the simulator included: wall time is also that of other programs.
    """
    spec = {"config": dict(timeout_us=100, attempts=1, in_flight=2)}
    found = play(tmp_path, figure_3(1), "whole_map", spec, seed=1)
    print(found)
    assert found["right"] and (found["switches"], found["hosts"]) == (40, 92)
    assert found["processor_seconds"] < 60


@pytest.mark.full
def test_figure_3_over_drivers_and_firmware_in_under_a_minute(tmp_path):
    """The same by the firmware and drivers of 92 nodes. Then every node has the map's routes to all others.

    The minute is of processor time, as above, and until the map is there.
    """
    spec = {
        "config": dict(timeout_us=300, attempts=1, in_flight=2, watch_us=100_000),
        "rests": 40_000,
        "forget": False,
    }
    found = play(tmp_path, figure_3(1).replace(firmware="am"), "over_drivers", spec, seed=1)
    print({name: value for name, value in found.items() if name != "reached"})
    assert found["given"]
    assert found["reached"] == [[there for there in range(92) if there != node] for node in range(92)]
    assert found["map"]["processor_seconds"] < 60
