"""The protocol step by step on a plain network: the document's rules, and each rule beyond it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanikai.hdl.config import ConfigError, LinkConfig
from lanikai.hdl.packet import Kind
from lanikai.sim.admission.host import State
from lanikai.sim.admission.ledger import Reason
from lanikai.sim.admission.messages import (
    CONTROL_LAYOUT,
    NO_ROUTER,
    Connection,
    Control,
    payload_size,
    unpack_control,
)
from lanikai.sim.admission.places import RouterPlace
from lanikai.sim.admission.router import Release, RouterAdmission
from support.admission.world import CONFIG, NETWORKS, World

SETTLED = 3_000


def ask(world, source, destination, units, *, flow=0, vl=0):
    return world.hosts[source].open(destination=destination, flow=flow, units=units, peak=units, vl=vl)


def used(world, router):
    """Units sent and received by each port that has any."""
    words = {port: word for (what, port, *_), word in world.registers()[router].items() if what == "used"}
    return {port: (word & 0xFFFF, word >> 16) for port, word in words.items() if word}


@pytest.fixture(params=range(3))
def chain(request):
    """Four routers in a row, a node at each: ports 1 and 2 lead on, 3 to the node, or as the network says."""
    return World(network="chain", seed=request.param)


def test_each_router_reserves_the_incoming_and_the_outgoing_link(chain):
    request = ask(chain, 0, 3, 4)
    assert request.state is State.ASKING
    chain.run(SETTLED)
    assert request.state is State.OPEN
    router, in_port = chain.network.nodes[0]
    for router, out_port in chain.network.path(0, 3):
        assert used(chain, router) == {in_port: (0, 4), out_port: (4, 0)}
        in_port = chain.network.neighbours.get((router, out_port), (0, 0))[1]
    chain.hosts[0].close(request, sent_last=False)
    chain.run(SETTLED)
    assert chain.registers() == chain.at_rest and request.released


def test_the_adapter_refuses_first_and_no_packet_leaves(chain):
    ask(chain, 0, 1, 7)
    chain.run(SETTLED)
    second = ask(chain, 0, 3, 4)
    assert (second.state, second.reason, second.router) == (State.REFUSED, Reason.LINK, NO_ROUTER)
    chain.run(SETTLED)
    assert used(chain, 3) == {}


def test_a_refusing_router_in_the_middle_is_named_and_the_release_stops_before_it(chain, monkeypatch):
    """Node 2 has most of the link to node 3. A connection of node 0 is refused at router 2."""
    first = ask(chain, 2, 3, 7)
    chain.run(SETTLED)
    before, seen = chain.registers(), []
    release = RouterAdmission._release

    def note(self, now, control):
        seen.append(self.place.number)
        return release(self, now, control)

    monkeypatch.setattr(RouterAdmission, "_release", note)
    second = ask(chain, 0, 3, 4)
    chain.run(SETTLED)
    assert (second.state, second.reason, second.router) == (State.REFUSED, Reason.LINK, 2)
    assert seen == [0, 1] and second.released and chain.registers() == before
    assert first.state is State.OPEN


def test_the_last_data_packet_frees_its_path(chain):
    request = ask(chain, 1, 3, 5)
    chain.run(SETTLED)
    chain.send_last(request)
    chain.hosts[1].close(request, sent_last=True)
    chain.run(SETTLED)
    assert chain.registers() == chain.at_rest
    with pytest.raises(
        ConfigError,
        match=r"^admission: flow 0 to node 3 is in use, or was within the last lease: take another$",
    ):
        ask(chain, 1, 3, 5)
    chain.run(CONFIG.lease_cycles)
    assert ask(chain, 1, 3, 5).state is State.ASKING


def test_of_two_probes_that_race_for_a_link_one_wins():
    for seed in range(20):
        world = World(network="chain", seed=seed)
        both = [ask(world, node, 3, 6) for node in (0, 1)]
        world.run(2 * SETTLED)
        states = sorted(request.state.name for request in both)
        assert states in (["OPEN", "REFUSED"], ["REFUSED", "REFUSED"])
        for request in both:
            world.hosts[request.name.source].close(request, sent_last=False)
        world.run(2 * SETTLED)
        assert world.registers() == world.at_rest


def test_a_router_without_power_left_refuses():
    world = World(network="cluster", power=12)
    first, second = ask(world, 0, 1, 7), ask(world, 2, 3, 7)
    world.run(SETTLED)
    both = {request.state: request for request in (first, second)}
    assert both.keys() == {State.OPEN, State.REFUSED}
    assert (both[State.REFUSED].reason, both[State.REFUSED].router) == (Reason.POWER, 0)
    assert world.registers()[0]["power"] == 5


def test_an_agent_that_begins_anew_reserves_again_with_the_next_refresh(chain):
    request = ask(chain, 0, 3, 4)
    chain.run(SETTLED)
    before = chain.registers()
    chain.stop_agent(1)
    chain.run(100)
    chain.start_agent(1)
    chain.run(SETTLED)
    assert used(chain, 1) == {}
    chain.run(CONFIG.refresh_cycles)
    assert request.state is State.OPEN and chain.registers() == before


def test_a_lost_connection_ends_where_there_is_no_room_any_more(chain):
    request = ask(chain, 0, 3, 4)
    chain.run(SETTLED)
    chain.stop_agent(1)
    chain.start_agent(1)
    chain.run(100)
    # Another one takes the room before the refresh.
    other = ask(chain, 1, 2, 8)
    chain.agents[2].ledger.remove(
        **{name: getattr(next(iter(chain.agents[2].records.values())), name) for name in WAY}
    )
    chain.agents[2].records.clear()
    chain.run(CONFIG.refresh_cycles + SETTLED)
    assert other.state is State.OPEN
    assert (request.state, request.reason, request.router) == (State.LOST, Reason.LINK, 1)


WAY = ("in_port", "out_port", "vl", "units", "peak")


class Agent:
    """One agent by itself, at router 1 of the chain: a connection of node 0 to node 3 comes by."""

    def __init__(self):
        self.admission = RouterAdmission(CONFIG, RouterPlace(NETWORKS["chain"], 1))
        in_port = NETWORKS["chain"].neighbours[NETWORKS["chain"].path(0, 3)[0]][1]
        self.base = {
            "source": 0,
            "destination": 3,
            "flow": 5,
            "units": 4,
            "peak": 6,
            "vl": 1,
            "in_port": in_port,
        }

    def send(self, now, kind, incarnation, **changes):
        control = Control(kind=kind, incarnation=incarnation, **self.base | changes)
        return [(send.control.kind, send.control.reason) for send in self.admission.packet(now, control)]

    @property
    def units(self):
        return sum(record.units for record in self.admission.records.values())


ON, OK, OVER = (Kind.PROBE, Reason.NONE), (Kind.ACK, Reason.NONE), (Kind.NACK, Reason.OVER)
FREE = (Kind.RELEASE, Reason.NONE)


def test_a_probe_that_comes_twice_reserves_once_and_goes_on_twice():
    agent = Agent()
    assert agent.send(10, Kind.PROBE, 7) == [ON] and agent.send(20, Kind.PROBE, 7) == [ON]
    assert agent.units == 4
    # The lease is the second one's.
    agent.admission.time(10 + CONFIG.lease_cycles)
    assert agent.units == 4
    agent.admission.time(20 + CONFIG.lease_cycles)
    assert agent.units == 0


def test_a_later_incarnation_takes_the_place_of_an_earlier_one_and_none_comes_back():
    agent = Agent()
    agent.send(10, Kind.PROBE, 7)
    assert agent.send(20, Kind.PROBE, 9, units=2) == [ON]
    assert agent.units == 2
    assert agent.send(30, Kind.PROBE, 7) == [OVER]
    # A late release of the earlier one frees nothing, and goes on for what may be behind.
    assert agent.send(40, Kind.RELEASE, 7) == [FREE]
    assert agent.units == 2
    assert agent.send(50, Kind.RELEASE, 9) == [FREE]
    assert agent.units == 0
    assert agent.send(60, Kind.PROBE, 9) == [OVER]
    assert agent.send(60, Kind.PROBE, 10) == [ON]


def test_a_release_that_finds_nothing_goes_on_and_is_answered_before_the_one_that_refused():
    agent = Agent()
    assert agent.send(10, Kind.RELEASE, 7) == [FREE]
    assert agent.send(10, Kind.RELEASE, 8, router=2) == [OK]


def test_what_was_refused_once_is_refused_again_for_the_same_reason():
    agent = Agent()
    agent.send(10, Kind.PROBE, 7, units=10, peak=10, flow=1)
    assert agent.send(20, Kind.PROBE, 8) == [(Kind.NACK, Reason.LINK)]
    agent.send(30, Kind.RELEASE, 7, flow=1)
    assert agent.send(40, Kind.PROBE, 8) == [(Kind.NACK, Reason.LINK)]
    assert agent.send(50, Kind.PROBE, 9) == [ON]


def test_a_report_frees_its_own_connection_alone():
    agent = Agent()
    agent.send(10, Kind.PROBE, 7)
    record = agent.admission.records[Connection(0, 3, 5)]
    good = Release(0, 3, 5, 4, record.in_port, record.out_port)
    for change in ({"flow": 6}, {"bandwidth": 3}, {"in_port": record.out_port}, {"source": 2}):
        agent.admission.report(20, good._replace(**change))
        assert agent.units == 4
    agent.admission.report(20, good)
    agent.admission.report(20, good)
    assert agent.units == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"source": 4},
        {"destination": 9},
        {"in_port": 6},
        {"vl": 15},
        {"units": 0},
        {"units": 256, "peak": 300},
    ],
)
def test_a_packet_that_makes_no_sense_is_no_packet(changes):
    agent = Agent()
    assert agent.send(10, Kind.PROBE, 7, **changes) == [] and not agent.admission.records


@given(
    st.fixed_dictionaries(
        {
            name: st.integers(0, (1 << CONTROL_LAYOUT[name].width) - 1)
            for name in CONTROL_LAYOUT.members
            if name not in ("kind", "about", "reason", "ask_host")
        }
    ),
    st.sampled_from([Kind.PROBE, Kind.ACK, Kind.NACK, Kind.RELEASE]),
    st.sampled_from(list(Reason)),
    st.sampled_from([32, 64, 128]),
    st.data(),
)
def test_a_control_packet_is_what_was_sent_or_none(numbers, kind, reason, bits, data):
    link = LinkConfig(flit_bits=bits, vls=16)
    control = Control(kind=kind, about=Kind.PROBE, reason=reason, ask_host=True, **numbers)
    flits = control.flits(5, link)
    assert len(flits) == {128: 10, 64: 10, 32: 11}[bits]
    assert unpack_control(flits, link) == control
    # One bit that is wrong, in header, payload or CRC; the route is no part of it.
    place = data.draw(st.integers(0, len(flits) - 1))
    bit = data.draw(st.integers(0, 31 if place == len(flits) - 1 else bits - 1))
    # What pads the last word of the payload is none of its bytes.
    padded = (16 + payload_size(link)) * 8 <= place * bits + bit and place < len(flits) - 1
    if place * bits + bit not in range(8, 56) and not padded:
        flits[place] ^= 1 << bit
        assert unpack_control(flits, link) is None
    assert unpack_control(flits[1:], link) is None
    assert payload_size(link) * 8 >= CONTROL_LAYOUT.size


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"destination": 900}, "admission: destination = 900: another of the nodes 0 to 4"),
        ({"destination": 0}, "admission: destination = 0: another of the nodes 0 to 4"),
        ({"units": 0}, "admission: units = 0: 1 to 255"),
        ({"units": 256}, "admission: units = 256: 1 to 255"),
        ({"units": 5, "peak": 4}, "admission: peak = 4: units (5) to 65535"),
        ({"vl": 7}, "admission: vl = 7: one of real_time_vls, (0, 1, 2)"),
    ],
)
def test_a_request_that_cannot_be_is_refused_by_name(changes, message):
    world = World(network="cluster")
    with pytest.raises(ConfigError) as error:
        world.hosts[0].open(**{"destination": 1, "flow": 0, "units": 1, "peak": 9, "vl": 0} | changes)
    assert str(error.value) == message
    # Nothing is held for it.
    assert world.registers() == world.at_rest
    assert world.hosts[0].admission.deadline is None


def test_a_probe_of_a_node_that_is_not_there_is_not_answered():
    """Any process may send data to the control queue pair of another host."""
    world = World(network="cluster")
    admission = world.hosts[1].admission
    for source in (5, 900):
        assert (
            admission.packet(
                10, Control(kind=Kind.PROBE, source=source, destination=1, flow=0, incarnation=1)
            )
            == []
        )


def test_a_host_that_begins_anew_rests_for_a_lease():
    world = World(network="cluster")
    world.stop_host(0)
    world.start_host(0, anew=True)
    until = world.now + CONFIG.lease_cycles
    with pytest.raises(
        ConfigError, match=rf"^admission: no request before cycle {until}: the host has begun anew$"
    ):
        ask(world, 0, 1, 1)
    world.run(CONFIG.lease_cycles)
    assert ask(world, 0, 1, 1).state is State.ASKING
