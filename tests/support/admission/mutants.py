"""Mechanisms of admission, each left out or broken: random histories must notice every one."""

from __future__ import annotations

from lanikai.hdl.packet import Kind
from lanikai.sim.admission import agent, host, messages
from lanikai.sim.admission.agent import HostAgent
from lanikai.sim.admission.host import HostAdmission, State
from lanikai.sim.admission.ledger import LinkSums, Reason, RouterLedger
from lanikai.sim.admission.router import RouterAdmission

from . import world


def no_lease(patch):
    patch.setattr(RouterAdmission, "time", lambda self, now: None)
    patch.setattr(RouterAdmission, "deadline", None)


def probes_do_not_renew(patch):
    probe = RouterAdmission._probe

    def first_only(self, now, control):
        record = self.records.get(control.connection)
        expires = record and record.expires
        sends = probe(self, now, control)
        if record is not None and self.records.get(control.connection) is record:
            record.expires = expires
        return sends

    patch.setattr(RouterAdmission, "_probe", first_only)


def probes_reserve_again(patch):
    probe = RouterAdmission._probe

    def again(self, now, control):
        record = self.records.get(control.connection)
        sends = probe(self, now, control)
        if record is not None and self.records.get(control.connection) is record:
            self._change(record, 1)
        return sends

    patch.setattr(RouterAdmission, "_probe", again)


def refuses_nothing(patch):
    patch.setattr(RouterLedger, "refusal", lambda self, **_: Reason.NONE)


def release_goes_no_further(patch):
    release = RouterAdmission._release

    def here_only(self, now, control):
        return [send for send in release(self, now, control) if send.control.kind is not Kind.RELEASE]

    patch.setattr(RouterAdmission, "_release", here_only)


def released_names_are_forgotten(patch):
    patch.setattr(RouterAdmission, "_close", lambda self, now, name, incarnation, reason=None: None)


def reports_are_ignored(patch):
    patch.setattr(RouterAdmission, "report", lambda self, now, release: None)


def peak_stays(patch):
    add = LinkSums.add
    patch.setattr(
        LinkSums, "add", lambda self, vl, units, peak, sign: add(self, vl, units, max(0, peak * sign), sign)
    )


def power_stays(patch):
    remove = RouterLedger.remove

    def keeps(self, **connection):
        left = self.power_left
        remove(self, **connection)
        self.power_left = left

    patch.setattr(RouterLedger, "remove", keeps)


def incoming_link_stays(patch):
    remove = RouterLedger.remove

    def keeps(self, *, in_port, **connection):
        remove(self, in_port=None, **connection)

    patch.setattr(RouterLedger, "remove", keeps)


def no_refresh(patch):
    due = HostAdmission._due

    def silent(self, now, request):
        if request.state is State.OPEN:
            request.due = now + self._config.refresh_cycles
            return []
        return due(self, now, request)

    patch.setattr(HostAdmission, "_due", silent)


def dead_destination_is_not_noticed(patch):
    due = HostAdmission._due

    def patient(self, now, request):
        request.unanswered = 0
        return due(self, now, request)

    patch.setattr(HostAdmission, "_due", patient)


def refusals_are_ignored(patch):
    patch.setattr(HostAdmission, "_refused", lambda self, now, request, control: [])


def refused_is_not_released(patch):
    refused = HostAdmission._refused

    def only_here(self, now, request, control):
        refused(self, now, request, control)
        self._end(now, request)
        return []

    patch.setattr(HostAdmission, "_refused", only_here)


def agent_does_not_clear_registers(patch):
    class Keeps:
        """A port whose writes do nothing before the first `next`."""

        def __init__(self, port):
            self._port, self._began = port, not port.registers

        def __getattr__(self, name):
            if name == "next":
                self._began = True
            if name.startswith("write") and not self._began:
                return self._nothing
            return getattr(self._port, name)

        async def _nothing(self, *_, **__):
            pass

    # Tables would be put right by the next change: those that are written at the start are left out, too.
    serve = agent.serve_router
    patch.setattr(world, "serve_router", lambda admission, port: serve(admission, Keeps(port)))


def no_packet_is_sent_again(patch):
    due = HostAdmission._due

    def once(self, now, request):
        if not request.releasing and request.state is State.ASKING:
            request.due = None
            return []
        return due(self, now, request)

    patch.setattr(HostAdmission, "_due", once)


def bad_crc_is_taken(patch):
    patch.setattr(messages, "_crc", lambda header, payload, last_flit, link: _Any())


def adapter_tables_stay(patch):
    hold = HostAdmission._hold

    def silent(self, request, holds):
        changed = self.changed
        hold(self, request, holds)
        self.changed = changed

    patch.setattr(HostAdmission, "_hold", silent)


def releases_leave_adapter_tables(patch):
    hold = HostAdmission._hold

    def silent(self, request, holds):
        changed = self.changed
        hold(self, request, holds)
        self.changed = self.changed if holds else changed

    patch.setattr(HostAdmission, "_hold", silent)


def host_does_not_clear_adapter_tables(patch):
    class Keeps:
        """A port whose first write of tables does nothing, if there are any from before."""

        def __init__(self, port):
            self._port, self._writes = port, not port.registers

        def __getattr__(self, name):
            return getattr(self._port, name)

        async def write_tables(self, tables):
            if self._writes:
                await self._port.write_tables(tables)
            self._writes = True

    serve = HostAgent.serve

    def kept(self):
        self._port = Keeps(self._port)
        return serve(self)

    patch.setattr(HostAgent, "serve", kept)


class _Any(int):
    """A CRC that any other equals."""

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __hash__ = int.__hash__


def names_do_not_rest_after_a_restart(patch):
    begin = HostAdmission.__init__

    def at_once(self, config, place, *, power=None, quiet_until=0):
        begin(self, config, place, power=power)

    patch.setattr(HostAdmission, "__init__", at_once)
    patch.setattr(host.HostAdmission, "__init__", at_once)


MUTANTS = [
    no_lease,
    probes_do_not_renew,
    probes_reserve_again,
    refuses_nothing,
    release_goes_no_further,
    released_names_are_forgotten,
    reports_are_ignored,
    peak_stays,
    power_stays,
    incoming_link_stays,
    no_refresh,
    dead_destination_is_not_noticed,
    refusals_are_ignored,
    refused_is_not_released,
    agent_does_not_clear_registers,
    no_packet_is_sent_again,
    bad_crc_is_taken,
    adapter_tables_stay,
    releases_leave_adapter_tables,
    host_does_not_clear_adapter_tables,
]
