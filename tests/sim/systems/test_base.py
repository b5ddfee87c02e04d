"""The base of every system, on one that is made from nothing else: `support.sim.toy_system`."""

import json
from random import Random

import pytest
from lanikai.hdl.config import ConfigError, RouterConfig
from lanikai.hdl.network import single_router
from lanikai.sim.build import model as build_module
from lanikai.sim.build.cache import Cache
from lanikai.sim.errors import SimulationError
from lanikai.sim.run import run
from lanikai.sim.systems.base import ENTRY, SystemConfig
from lanikai.sim.systems.cluster import ClusterConfig
from lanikai.sim.systems.message_config import MessageNetworkConfig
from lanikai.sim.systems.rate_unit import RateUnitConfig
from lanikai.sim.systems.traffic_config import TrafficNetworkConfig
from support.sim.toy_system import ToyConfig

COUNT = "support.sim.toy_system:count"


def played(config, spec, folder, **more):
    return run(config.build(), *config.job(COUNT, spec), out_dir=folder, **more)


def test_a_point_runs_on_a_system_of_its_configuration(tmp_path):
    """The coroutine has the configuration, the clock, and seed, random numbers, progress and folder of the run."""
    told = []
    done = played(
        ToyConfig(start=100),
        {"cycles": 7, "rest": 0},
        tmp_path,
        seed=5,
        progress=lambda fraction, text: told.append((fraction, text)),
    )
    assert done.value == {"value": 107, "start": 100, "seed": 5, "random": Random(5).random()}
    assert (0.5, "counted") in told and (tmp_path / "note").read_text() == "here"


def test_the_watchdog_ends_it_and_tells_the_state(tmp_path):
    """The error says how long nothing moved and that nothing waits; `state` is in the log."""
    config = ToyConfig(start=3, watchdog_cycles=50)
    assert played(config, {"cycles": 4, "rest": 40}, tmp_path).value["value"] == 7
    with pytest.raises(
        SimulationError,
        match=r"^nothing has moved for 50 cycles \(now cycle 5\d\); no flit waits in the network \(log: ",
    ):
        played(config, {"cycles": 4, "rest": 60}, tmp_path, name="stuck")
    (log,) = tmp_path.glob("*stuck*.log")
    assert "watchdog: state in cycle 5" in log.read_text() and "\nvalue: 7\n" in log.read_text()


def test_a_job_names_all_that_makes_the_system():
    """The job is plain JSON, from which the simulation makes the same configuration again."""
    entry, job = ToyConfig(start=9).job(COUNT, {"cycles": 1})
    assert entry == ENTRY
    assert job == {
        "system": "support.sim.toy_system:ToyConfig",
        "config": {"start": 9, "watchdog_cycles": 0},
        "entry": COUNT,
        "spec": {"cycles": 1},
    }
    assert ToyConfig(**job["config"]) == ToyConfig(start=9)


def test_only_what_is_in_the_design_makes_another_design(tmp_path, monkeypatch):
    """A field that is not in the design makes no other recipe; each other field does, and each variant."""
    cache = Cache(tmp_path / "cache")
    monkeypatch.setattr(build_module, "Cache", lambda: cache)

    def built(design, variant, *_):
        (cache.root / "models" / "k").mkdir(parents=True, exist_ok=True)
        return build_module.Model(
            top="t", variant=variant, executable=tmp_path, cached=False, seconds=0, key="k"
        )

    monkeypatch.setattr(build_module, "_build_design", built)
    monkeypatch.setattr(ToyConfig, "made", [])
    ToyConfig().build()
    ToyConfig(watchdog_cycles=7).build()
    assert ToyConfig.made == ["fast"]
    ToyConfig(start=1).build()
    ToyConfig().build("debug")
    assert ToyConfig.made == ["fast", "fast", "debug"]


NETWORK = single_router(2, router=RouterConfig())


@pytest.mark.parametrize(
    "config",
    [
        ClusterConfig(),
        TrafficNetworkConfig(network=NETWORK),
        MessageNetworkConfig(network=NETWORK),
        RateUnitConfig(),
    ],
    ids=lambda config: config.title,
)
def test_limits_of_a_run_are_in_no_key(config):
    """Limits that end a simulation are no part of its design, in any system. Every other field is in the key."""
    fields = type(config).model_fields
    assert {name for name in fields if name.endswith("_cycles")} <= config.not_in_design
    assert set(json.loads(config.key())) == fields.keys() - config.not_in_design


def test_wrong_systems_are_refused():
    """Refused are a name of no field in `not_in_design`, a configuration without a design, and an unknown key."""
    with pytest.raises(
        TypeError, match=r"^Wrong.not_in_design names watchdog; the fields are watchdog_cycles$"
    ):

        class Wrong(SystemConfig):
            not_in_design = frozenset({"watchdog"})
            watchdog_cycles: int = 0

    class Bare(SystemConfig):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Bare()
    with pytest.raises(
        ConfigError, match=r"^ToyConfig: unknown key 'stop'; valid keys: start, watchdog_cycles$"
    ):
        ToyConfig(stop=1)
