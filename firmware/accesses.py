"""Lists of accesses to a card's registers and SRAM, carried out in one go.

A step of firmware that knows its accesses beforehand writes them down and hands them over. Whoever has the port carries
them out, each at the cycles that it takes one by one. The step goes on at their end, with the words that were read:

    steps = AccessList()
    status = steps.read("HOST_DMA_STATUS")
    steps.write("ISR", host_dma=1)
    await processor.run("sdma_done", steps)
    if status["error"]:
        ...

A write takes 1 cycle and a read 2, more if the SRAM is busy. All else but a pause takes none. So a list takes as long
as its accesses do, and firmware may be written either way. `carry_out.py` says what each record does.

A list may be kept, and carried out again and again. Its readings then have the words of the last time.
"""

from __future__ import annotations

from enum import IntEnum

from . import registers

__all__ = ["LONGEST", "AccessList", "Op", "Reading", "Record", "Why"]

LONGEST = 128
"""Most records of a list: accesses, pauses, conditions. A read of several words has one for each."""
WORD = 0xFFFFFFFF


class Op(IntEnum):
    """The first word of a record; below each, its operands (as `Op` of `sim/native/lists.h`)."""

    READ = 0
    """address"""
    WRITE = 1
    """address, word"""
    COPY = 2
    """address, reading, mask, bits to the left, flipped bits, added number, mask"""
    PAUSE = 3
    """cycles"""
    WAIT = 4
    """address, mask, value, cycles between two reads, most reads"""
    SKIP = 5
    """reading, mask, value, 1 if it must not be that, records"""
    STOP = 6
    """reading, mask, value, 1 if it must not be that"""
    MARK = 7
    """cycles"""


class Why(IntEnum):
    """The reason for which a list has come to its end."""

    END = 0
    STOPPED = 1
    """A condition said so."""
    MARKED = 2
    """At a mark, as another step waits for the processor."""
    LATE = 3
    """The last wait has come to its bound."""


Record = tuple[int, ...]


class Reading:
    """A word that a list reads. `name` is its register, "" for a word of SRAM; `place` is its number in the list.

    Once the list has been carried out, `word` is what was read, None if the list ended before. `reading["field"]` is a
    field of the register; it raises KeyError for one that there is not, and ValueError as `get`.
    """

    def __init__(self, name: str, place: int) -> None:
        self.name, self.place = name, place
        self.word: int | None = None

    def get(self) -> int:
        """The word. Raises ValueError if it has not been read."""
        if self.word is None:
            raise ValueError(f"{self.name or 'a word of SRAM'} has not been read: its list ended before")
        return self.word

    def fields(self) -> dict[str, int]:
        """All fields of the register. Raises ValueError as `get`."""
        return registers.unpack(self.name, self.get())

    def __getitem__(self, field: str) -> int:
        return self.fields()[field]


class AccessList:
    """A list of accesses, in their order, of at most `LONGEST` records.

    - `records`: what has been written down.
    - `readings`: its words that are read.
    - `reached`: how many records have been passed.
    - `why`: the reason for which it ended.
    - `has_marks`: whether it may end at a mark.
    - `paid`: place, name and cycles of each step that it pays for (`Processor.pay`).
    - `interrupted`: whether it is to end at its next mark; whoever carries it out looks there.

    Each call raises ValueError for an operand that does not fit, and for a record too many. Names and fields are those
    of the registers (`lanikai.firmware.registers`), whose errors they raise.
    """

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.readings: list[Reading] = []
        self.paid: list[tuple[int, str, int]] = []
        self.reached = 0
        self.why = Why.END
        self.interrupted = False
        self.has_marks = False
        self._skips = False

    def read(self, name: str) -> Reading:
        """Read a register, 2 cycles."""
        self._add(Op.READ, registers.address(name))
        return self._reading(name)

    def write(self, name: str, **fields: int) -> None:
        """Write a register's fields, the others zero, 1 cycle."""
        self._add(Op.WRITE, registers.address(name), registers.pack(name, **fields))

    def load(self, address: int, words: int = 1) -> list[Reading]:
        """Read words of SRAM from `address` on, 2 cycles each and their wait."""
        found = []
        for place in range(words):
            self._add(Op.READ, address + 4 * place)
            found.append(self._reading(""))
        return found

    def store(self, address: int, *words: int) -> None:
        """Write words to SRAM from `address` on, 1 cycle each and their wait."""
        for place, word in enumerate(words):
            self._add(Op.WRITE, address + 4 * place, word)

    def copy(
        self,
        reading: Reading,
        name: str,
        *,
        mask: int = WORD,
        left: int = 0,
        flip: int = 0,
        add: int = 0,
        keep: int = WORD,
    ) -> None:
        """Write a word made of one that was read before to a register, 1 cycle.

        It is `(((word & mask) << left ^ flip) + add) & keep`, of 32 bits; `left` below 0 shifts to the right.
        """
        if not -31 <= left <= 31:
            raise ValueError(f"left = {left}: -31 to 31")
        self._add(Op.COPY, registers.address(name), reading.place, mask, left & WORD, flip, add & WORD, keep)

    def pause(self, cycles: int) -> None:
        """Let the processor work on its own for so many cycles, 0 or more."""
        if cycles:
            self._add(Op.PAUSE, cycles)

    def pay(self, name: str, cycles: int) -> None:
        """Pause for a further step of the cost table, which is charged if the list comes to it."""
        self.paid.append((len(self.records), name, cycles))
        self.pause(cycles)

    def wait(self, name: str, *, mask: int, value: int, every_cycles: int, most_reads: int) -> Reading:
        """Read a register again and again until `word & mask == value`, with `every_cycles` between two reads.

        After `most_reads` (1 to 65535) the list ends there, with `Why.LATE`. Its reading is the last one.
        """
        if not 1 <= most_reads < 1 << 16:
            raise ValueError(f"most_reads = {most_reads}: 1 to 65535")
        self._add(Op.WAIT, registers.address(name), mask, value, every_cycles, most_reads)
        return self._reading(name)

    def skip_if(
        self, reading: Reading, *, mask: int, value: int, records: int, differs: bool = False
    ) -> None:
        """Leave out the next `records` if `word & mask == value`, or if it `differs`. They read nothing."""
        if not 1 <= records <= LONGEST:
            raise ValueError(f"records = {records}: 1 to {LONGEST}")
        self._skips = True
        self._add(Op.SKIP, reading.place, mask, value, int(differs), records)

    def stop_if(self, reading: Reading, *, mask: int, value: int, differs: bool = False) -> None:
        """End the list here if `word & mask == value`, or if it `differs`."""
        self._add(Op.STOP, reading.place, mask, value, int(differs))

    def stop(self) -> None:
        """End the list here, if it comes here. Something must have been read before."""
        if not self.readings:
            raise ValueError("stop: nothing has been read, so the list could only be shorter")
        self._add(Op.STOP, 0, 0, 0, 0)

    def mark(self, cycles: int) -> None:
        """A step ends here, and another one begins, with `cycles` of its own.

        If another step has asked for the processor, the list ends here with `Why.MARKED`.
        """
        self.has_marks = True
        self._add(Op.MARK, cycles)

    def check(self) -> None:
        """Look at the whole list. Raises ValueError for a record left out that reads, or one behind the end.

        Then the words that are read are the same in number and order whatever is left out.
        """
        for place, record in enumerate(self.records if self._skips else ()):
            if record[0] == Op.SKIP:
                left_out = self.records[place + 1 : place + 1 + record[5]]
                if len(left_out) < record[5]:
                    raise ValueError(
                        f"record {place} leaves out {record[5]} records, and {len(left_out)} follow"
                    )
                if any(one[0] in (Op.READ, Op.WAIT) for one in left_out):
                    raise ValueError(f"record {place} leaves out a record that reads")

    def rewind(self) -> None:
        """Go back to the list's beginning, with nothing read."""
        for reading in self.readings:
            reading.word = None
        self.reached, self.why, self.interrupted = 0, Why.END, False

    def charges(self, step: str) -> list[tuple[str, int]]:
        """Names and cycles of the further steps that it has come to: those that it pays for, and its marks, which
        are of `step`."""
        whole = self.why is Why.END
        found = [(name, cycles) for place, name, cycles in self.paid if whole or place < self.reached]
        if self.has_marks:
            found += [(step, record[1]) for record in self.records[: self.reached] if record[0] == Op.MARK]
        return found

    def ended(self, why: Why, reached: int) -> None:
        """Note the end, as whoever carries it out says."""
        self.why, self.reached = why, reached

    def _add(self, op: Op, *operands: int) -> None:
        if len(self.records) >= LONGEST:
            raise ValueError(f"a list of accesses has at most {LONGEST} records")
        for operand in operands:
            if not 0 <= operand <= WORD:
                raise ValueError(f"{op.name}: {operand:#x} does not fit 32 bits")
        self.records.append((op, *operands))

    def _reading(self, name: str) -> Reading:
        self.readings.append(Reading(name, len(self.readings)))
        return self.readings[-1]
