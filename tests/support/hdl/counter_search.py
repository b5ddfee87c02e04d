"""The search for counters in an elaborated block: registers that are added to, memories written with a word that was
read."""

from pathlib import Path

from amaranth.hdl._ast import Assign, Concat, Operator, Part, Signal, Slice, SwitchValue
from amaranth.hdl._mem import MemoryInstance


def adds(value, target):
    """Whether there is a sum in an expression that reads the signal `target`."""
    if isinstance(value, Operator):
        summed = value.operator == "+" and target in value._rhs_signals()
        return summed or any(adds(operand, target) for operand in value.operands)
    if isinstance(value, Slice | Part):
        return adds(value.value, target)
    if isinstance(value, Concat):
        return any(adds(part, target) for part in value.parts)
    return isinstance(value, SwitchValue) and any(adds(one, target) for _, one in value.cases)


def assigns(statements):
    """The assignments among statements, with those in cases."""
    for statement in statements:
        if isinstance(statement, Assign):
            yield statement
        for case in getattr(statement, "cases", ()):
            yield from assigns(case[1])


def counting_registers(fragment):
    """(Path, line, bits) of counters in a fragment and in those below it.

    The line is that of the sum, be it in the clocked assignment or in the logic that says what the register becomes.
    """
    becomes = {}
    for one in assigns(fragment.statements.get("comb", ())):
        if isinstance(one.lhs, Signal):
            becomes.setdefault(id(one.lhs), []).append(one)
    for domain, statements in fragment.statements.items():
        for one in assigns(statements if domain != "comb" else ()):
            for sum_of in (one, *becomes.get(id(one.rhs), ())):
                if any(adds(sum_of.rhs, to) for to in one.lhs._lhs_signals()):
                    path, line = sum_of.src_loc
                    yield Path(path), line, len(one.lhs)
    for below, _, _ in fragment.subfragments:
        yield from counting_registers(below)


def logic(fragment, drivers, memories):
    """Collect the drivers of each signal by logic (by identity), and the memories."""
    for one in assigns(fragment.statements.get("comb", ())):
        for to in one.lhs._lhs_signals():
            drivers.setdefault(id(to), []).extend(one.rhs._rhs_signals())
    if isinstance(fragment, MemoryInstance):
        memories.append(fragment)
    for below, _, _ in fragment.subfragments:
        logic(below, drivers, memories)


def counting_memories(fragment):
    """(Path, line, bits) of memories that are written with a value that follows from a word read of them."""
    drivers, memories = {}, []
    logic(fragment, drivers, memories)
    for one in memories:
        reads = {id(signal) for port in one._read_ports for signal in port._data._lhs_signals()}
        seen, left = set(), [signal for port in one._write_ports for signal in port._data._rhs_signals()]
        while left:
            signal = left.pop()
            if id(signal) not in seen:
                seen.add(id(signal))
                left += drivers.get(id(signal), ())
        if reads & seen:
            path, line = one.src_loc
            yield Path(path), line, len(one._read_ports[0]._data)
