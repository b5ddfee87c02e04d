"""The cocotb test module of every run: finds the coroutine to run, runs it, sends its result to `run`."""

from __future__ import annotations

import gc
import json
import os
import time
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import Event

from ..errors import SimulationError
from .clock import Clock
from .console import join_console, refuse_breakpoints
from .failures import not_begun, user_lines, watch_awaits
from .session import Session, load_coroutine

__all__ = ["lanikai_run"]


@cocotb.test()
async def lanikai_run(dut: Any) -> None:
    """Run the coroutine named in the job (`run.py`) and send its result, or the first exception of any
    coroutine."""
    job = json.loads(os.environ["LANIKAI_JOB"])
    ended = Event()
    failures: list[BaseException] = []
    results: list[Any] = []

    def fail(error: BaseException) -> None:
        failures.append(error)
        ended.set()

    watch_awaits(fail)
    clock = Clock(fail)
    session = Session(
        dut,
        json.loads(Path(job["spec"]).read_text()),
        seed=job["seed"],
        out_dir=Path(job["out_dir"]),
        channel=job["channel"],
        clock=clock,
        carried=job["carried"],
    )
    if job["console"]:
        join_console(session.send, job["channel"])
    else:
        refuse_breakpoints()

    async def main() -> None:
        try:
            coroutine = load_coroutine(job["entry"])
            # All that was imported stays: the collector need not go through it again and again.
            gc.freeze()
            await clock.drive_phase()
            session.started = time.perf_counter()
            result = await coroutine(session)
            try:
                json.dumps(result)
            except (TypeError, ValueError) as error:
                raise TypeError(f"what the coroutine returns must be JSON: {error}") from None
            results.append(result)
            ended.set()
        except Exception as error:
            fail(error)

    cocotb.start_soon(main())
    await ended.wait()
    took = {"cycles": clock.cycle, "seconds": time.perf_counter() - session.started}
    if failures:
        error = failures[0]
        text = " ".join(str(error).split()) or "no message"
        lines = error.lines if isinstance(error, SimulationError) and error.lines else user_lines(error)
        held = not_begun()
        lines = lines if set(held) & set(lines) else [*lines, *held]
        session.send({"error": text, "type": type(error).__name__, "lines": lines, **took})
        raise error  # cocotb writes the traceback and its verdict into the log
    session.send({"result": results[0], **took})
