"""Debug builds have monitors: a rule that an interface breaks ends the simulation with its place and cycle."""

import re

import pytest
from lanikai.hdl.router.transmit import TransmitStage
from lanikai.sim.build.model import build
from lanikai.sim.errors import SimulationError
from lanikai.sim.run import run
from support.sim.pair import PAIR

from .test_composed_debug import SMALL

STALLED = {"classes": [{"load": 0.5, "packet_flits": 6, "vl_count": 2}]}
BREACH = "simulation.log"


def texts(design):
    found = [*design.sources.values()]
    if design.composition:
        for block, library in design.composition.libraries("debug").values():
            found += block.sources(library).values()
    return "\n".join(found)


@pytest.mark.parametrize("composed", [True, pytest.param(False, marks=pytest.mark.full)])
@pytest.mark.parametrize(
    ("config", "ends"),
    [(SMALL, ["rx__0", "tx__4"]), (PAIR, ["rx__0", "tx", "dma", "host", "processor", "processor_1"])],
    ids=["traffic", "cluster"],
)
def test_only_a_debug_build_is_watched(config, ends, composed):
    config = config.replace(composed=composed)
    told = texts(config.design("debug"))
    for end in ends:
        assert f'"{end}: rule ' in told, end
    assert "broken by the" not in texts(config.design("fast"))


def test_links_that_are_to_fail_are_not_watched():
    config = SMALL.replace(composed=False, faults=((0, 1, "out"),))
    assert "broken by the" not in texts(config.design("debug"))


def breach(config, entry, spec, tmp_path):
    """The message of the run's end, without the name of its log."""
    with pytest.raises(SimulationError) as caught:
        run(build(config.design("debug"), "debug"), *config.job(entry, spec), out_dir=tmp_path, seed=1)
    text = str(caught.value)
    assert "\n" not in text and text.endswith(f" (log: {tmp_path / BREACH})")
    return text.partition(" (log: ")[0]


@pytest.mark.full
@pytest.mark.parametrize("composed", [True, False])
def test_a_flit_without_its_credit_ends_the_run(composed, monkeypatch, tmp_path):
    """A transmitter believes in a place more than the receiver has. Sinks give no credits back."""
    plain = TransmitStage.__init__

    def wrong(self, config, *, credit_flits):
        plain(self, config, credit_flits=credit_flits + 1)

    monkeypatch.setattr(TransmitStage, "__init__", wrong)
    config = SMALL.replace(composed=composed)
    text = breach(config, "support.sim.parts_points:stuck", STALLED, tmp_path)
    assert re.fullmatch(
        r"network_bench\.network\.router\d, [rt]x__\d: rule no_credit broken by the sender: "
        r"a flit was sent without a credit, cycle \d+",
        text,
    ), text
