"""A list of accesses carried out by single accesses: what every other way to carry it out must do, to the cycle."""

from __future__ import annotations

from .accesses import AccessList, Op, Record, Why
from .ports import ProcessorPort

__all__ = ["carry_out"]

WORD = 0xFFFFFFFF


async def carry_out(port: ProcessorPort, accesses: AccessList, lead_cycles: int = 0) -> None:
    """Carry a list out by single accesses to `port`, from the record on that it has reached, `lead_cycles` from now."""
    if lead_cycles:
        await port.sleep(lead_cycles)
    records, words = accesses.records, accesses.words
    place = accesses.reached
    why = Why.END

    def matches(record: Record) -> bool:
        word = words[record[1]]
        return (word & record[2] == record[3]) != bool(record[4])

    while place < len(records):
        record = records[place]
        op = record[0]
        if op == Op.MARK and accesses.interrupted:
            why = Why.MARKED
            break
        place += 1
        if op == Op.READ:
            words.append(await port.read(record[1]))
        elif op == Op.WRITE:
            await port.write(record[1], record[2])
        elif op == Op.COPY:
            await port.write(record[1], _copied(words[record[2]], record))
        elif op in (Op.PAUSE, Op.MARK):
            if record[1]:
                await port.sleep(record[1])
        elif op == Op.WAIT:
            word = await port.read(record[1])
            for _ in range(record[5] - 1):
                if word & record[2] == record[3]:
                    break
                if record[4]:
                    await port.sleep(record[4])
                word = await port.read(record[1])
            words.append(word)
            if word & record[2] != record[3]:
                why = Why.LATE
                break
        elif op == Op.SKIP:
            if matches(record):
                place += record[5]
        elif matches(record):
            why = Why.STOPPED
            break
    accesses.ended(why, place)


def _copied(word: int, record: Record) -> int:
    """The word that a `COPY` writes."""
    left = record[4] if record[4] < 32 else record[4] - (WORD + 1)
    masked = word & record[3]
    shifted = masked << left & WORD if left >= 0 else masked >> -left
    return (shifted ^ record[5]) + record[6] & record[7] & WORD
