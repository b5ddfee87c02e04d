"""Every registered firmware program keeps to the protocol, and says at once what it cannot run with."""

import pytest
from lanikai.firmware.programs import PROGRAMS, find_program
from lanikai.hdl.config import Config, ConfigError, NicConfig, preset
from support.firmware.python_card import Card, Network
from support.firmware.scheduler import World

OWNERS = preset(
    NicConfig,
    "tiny",
    owners=4,
    receive_doorbells="merged",
    doorbell_priorities=2,
    shadow_windows=True,
    completion_queues=4,
    completion_batch=2,
    regions=4,
    translation_entries=4,
    host_dma_queue_entries=4,
)
CARDS = {
    "am": preset(NicConfig, "tiny", doorbell="polled", mtu_bytes=128, sram_bytes=16384),
    "gm": preset(NicConfig, "tiny"),
    "work queues": OWNERS,
    "via": OWNERS,
}
"""A card for each interface that programs speak."""


class Other(Config):
    """The configuration of no program."""


class Pair:
    """A card with two processors."""

    processors = (None, None)


def make(name, **changes):
    world, nic = World(), CARDS[find_program(name).speaks]
    card = Card(Network(world), 1, nic)
    arguments = {"node": 1, "nic": nic, "routes": {0: 0}} | changes
    return world, card, find_program(name)(arguments.pop("card", card), **arguments)


def first_processor(program):
    """The one processor of most programs, or the first of several."""
    return program.processors[0] if hasattr(program, "processors") else program.processor


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_made_of_the_same_arguments_and_starts_nothing_by_itself(name):
    world, _, program = make(name)
    kind = PROGRAMS[name]
    assert type(program.config) is kind.Config and program.config == kind.default_config(program.nic)
    assert program.node == 1 and program.routes == {0: 0} and program.costs is kind.default_costs
    assert program.advanced_cycle == 0 and program.pending >= 0
    assert all(isinstance(line, str) for line in [*program.state(), *program.waiting()]) and program.state()

    async def nothing():
        await world.sleep(1000)

    world.run(nothing())
    assert not first_processor(program).steps_taken


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_pays_for_what_it_does_at_its_costs(name):
    dearer = PROGRAMS[name].default_costs.replace(dispatch=77)
    world, _, program = make(name, costs=dearer)

    async def boot():
        program.start()
        await world.sleep(500)

    world.run(boot())
    processor = first_processor(program)
    assert processor.steps_taken["dispatch"] and processor.cycles_spent["dispatch"] % 77 == 0


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_refuses_what_is_not_its_own(name):
    kind = PROGRAMS[name]
    with pytest.raises(ConfigError) as refused:
        make(name, config=Other())
    assert str(refused.value) == (
        f"{kind.__name__}: Other is the configuration of another program; it takes {kind.Config.__name__}"
    )
    with pytest.raises(ConfigError) as refused:
        make(name, card=Pair())
    assert str(refused.value) == (
        f"{kind.__name__}: it runs on one processor, the card has 2: set NicConfig.processors = 1"
    )


def test_an_unknown_program_is_refused_by_name():
    with pytest.raises(
        ConfigError, match=r"^unknown firmware program 'vmmc'; valid programs: am, gm, via, work_queue$"
    ):
        find_program("vmmc")
