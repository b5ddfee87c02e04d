"""A plain Python model of `hdl/traffic/generator.py`: the same births in the same cycles from the same seed."""

from dataclasses import dataclass, field

from lanikai.hdl.traffic.pattern import uniform_value
from lanikai.hdl.traffic.ports import Choice, Mode, VlChoice
from lanikai.hdl.traffic.random import exponential_value, xoroshiro

ONE = 1 << 12
"""SPACING of one cycle."""


@dataclass(kw_only=True)
class Settings:
    """A class's registers, by their fields."""

    mode: Mode = Mode.OFF
    pattern: Choice = Choice.UNIFORM
    vl_choice: VlChoice = VlChoice.RANDOM
    vl_first: int = 0
    vl_count: int = 1
    service_level: int = 0
    flits: int = 4
    spacing: int = 8 * ONE
    on: int = 20
    off: int = 20
    node: int = 0
    fraction: int = 0
    interval: int = 50
    first: int = 0
    last: int = 0
    phase: int = 0

    def words(self):
        """(register, fields) of `class.rdl`."""
        yield "LENGTH", {"flits": self.flits}
        yield "SPACING", {"cycles": self.spacing}
        yield "ON", {"cycles": self.on}
        yield "OFF", {"cycles": self.off}
        yield "DESTINATION", {"node": self.node, "fraction": self.fraction}
        yield "INTERVAL", {"cycles": self.interval}
        yield "TRACE", {"first": self.first, "last": self.last}
        yield "PHASE", {"cycles": self.phase}
        # Last, as it starts the class.
        yield (
            "CONTROL",
            {
                "mode": self.mode.value,
                "pattern": self.pattern.value,
                "vl_choice": self.vl_choice.value,
                "vl_first": self.vl_first,
                "vl_count": self.vl_count,
                "service_level": self.service_level,
            },
        )


@dataclass(kw_only=True)
class Born:
    """A birth: `due` is its time, `vl` its queue; the rest as in `ports.Birth`."""

    due: int
    vl: int
    destination: int
    traffic_class: int
    frame_end: bool
    flits: int
    service_level: int


@dataclass
class _Process:
    primed: bool = False
    due: int = 0  # 12 fraction bits
    on_end: int = 0
    need_on: bool = False
    need_frame: bool = False
    fetching: bool = False
    frame_time: int = 0
    row: int = 0
    left: int = 0
    spacing: int = 0
    destination: int = 0
    vl: int = 0
    turn: int = 0


@dataclass
class GeneratorModel:
    """The model of a generator; `cycle` is a clock cycle with the sources running.

    - `trace`: (flits, spacing) rows.
    - `vl_of`: VL of each destination.
    - `header_flits`: the shortest packet.
    """

    settings: list
    words: list
    node: int = 0
    nodes: int = 16
    header_flits: int = 1
    trace: list = field(default_factory=list)
    vl_of: list = field(default_factory=list)

    def __post_init__(self):
        self.random = [xoroshiro(words) for words in self.words]
        self.processes = [_Process() for _ in self.settings]
        self.last = len(self.settings) - 1
        self.deferred = [0] * len(self.settings)

    def cycle(self, now, full=0):
        """Serve at most one event. Returns the birth, if it was one. `full`: queues that take none."""
        fetched = [p for p in self.processes if p.fetching]
        asking = []
        for c, (s, p) in enumerate(zip(self.settings, self.processes, strict=True)):
            if s.mode == Mode.OFF:
                continue
            expired = s.mode == Mode.ON_OFF and p.primed and not p.need_on and p.due >> 12 >= p.on_end
            ready = p.primed and p.due >> 12 <= now and not (expired or p.need_on or p.need_frame)
            blocked = full >> p.vl & 1
            if ready and blocked:
                self.deferred[c] += 1
            if not p.primed or expired or p.need_on or p.need_frame or (ready and not blocked):
                asking.append(c)
        born = None
        if asking and not fetched:
            c = min(asking, key=lambda c: (c - self.last - 1) % len(self.settings))
            self.last = c
            born = self._serve(c, now)
        for p in fetched:
            s = self.settings[self.processes.index(p)]
            p.left, p.spacing = self.trace[p.row]
            p.due = p.frame_time << 12
            p.frame_time += s.interval
            p.need_frame = p.left == 0
            p.row = s.first if p.row == s.last else p.row + 1
            p.fetching = False
        return born

    def _serve(self, c, now):
        s, p = self.settings[c], self.processes[c]
        total, raw = next(self.random[c])
        draw = exponential_value(total >> 32)

        def drawn(mean):
            return draw * mean >> 28

        if not p.primed:
            start = now + 1 + s.phase
            p.primed = True
            p.due = (now + 1 + drawn(s.spacing) if s.mode == Mode.RANDOM else start) << 12
            p.on_end, p.frame_time, p.row = start, start, s.first
            p.need_on, p.need_frame = False, s.mode == Mode.TRACE
            self._choose(s, p, total, raw)
            return None
        if p.need_on:
            p.on_end += drawn(s.on << 12)
            p.need_on = False
            return None
        if s.mode == Mode.ON_OFF and p.due >> 12 >= p.on_end:
            off = drawn(s.off << 12)
            p.due += off << 12
            p.on_end += off
            p.need_on = True
            return None
        if p.need_frame:
            p.fetching = True
            return None
        ends = s.mode == Mode.TRACE and p.left <= s.flits
        born = Born(
            due=p.due >> 12,
            vl=p.vl,
            destination=p.destination,
            traffic_class=c,
            frame_end=ends,
            flits=max(p.left if ends else s.flits, self.header_flits),
            service_level=s.service_level,
        )
        if s.mode == Mode.RANDOM:
            p.due += 1 + drawn(s.spacing) << 12
        elif s.mode == Mode.TRACE:
            p.due += p.spacing
            p.left -= s.flits
            p.need_frame = ends
        else:
            p.due += s.spacing
        self._choose(s, p, total, raw)
        return born

    def _choose(self, s, p, total, raw):
        p.destination = uniform_value(total >> 8 & 0xFFFFFF, self.node, self.nodes)
        hot = s.pattern == Choice.HOT_SPOT and (raw & 0xFFF) < s.fraction and s.node != self.node
        if s.pattern == Choice.FIXED or hot:
            p.destination = s.node
        if s.vl_choice == VlChoice.RANDOM:
            p.vl = s.vl_first + ((raw >> 16 & 0xFFFF) * s.vl_count >> 16)
        elif s.vl_choice == VlChoice.IN_TURN:
            p.vl = s.vl_first + p.turn
        else:
            p.vl = self.vl_of[p.destination]
        p.turn = 0 if p.turn + 1 >= s.vl_count else p.turn + 1
