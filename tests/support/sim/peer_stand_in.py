"""A stand-in for BookSim 2.0: a program that reads its configuration and prints lines of its form.

It simulates nothing. It computes for as long as the cycles that it is asked for would take at `CYCLES_PER_SECOND`, and
some more for a start. `STAND_IN` in the environment makes it misbehave: `crash`, `fail`, `refuse`, `hang`, `short`,
`babble`, `idle`.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time

CYCLES_PER_SECOND = 100_000
START_SECONDS = 0.1
LATENCY_CYCLES = 75.5


def spend(seconds: float) -> None:
    """Take processor time."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def main(path: str) -> int:
    """A run."""
    what = os.environ.get("STAND_IN", "")
    with open(path) as file:
        values = dict(re.findall(r"^(\w+) = ([^;]+);$", file.read(), re.MULTILINE))
    if what == "fail":
        print("cannot start")
        return 1
    # It ends with the same status where it refuses its configuration as after a run that has ended well.
    fields = {name: value for name, value in values.items() if re.fullmatch("-?[0-9]+", value)}
    if what == "refuse" or "injection_rate" in fields:
        print("Parse error : Unknown integer field: injection_rate", file=sys.stderr)
        return 255
    if what == "crash":
        print("BEGIN Configuration File", flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "hang":
        time.sleep(600)
    if what == "babble":
        print("hello")
        return 0
    cycles = int(values["sample_period"]) * int(values["max_samples"]) + 37
    spend(START_SECONDS + cycles / CYCLES_PER_SECOND)
    print("Class 0:")
    print("Packet latency average = 11.0\n\tminimum = 9\n\tmaximum = 13")
    print("Accepted flit rate average= 0.01\n\tminimum = 0.009 (at node 3)\n\tmaximum = 0.02 (at node 5)")
    print("Warmed up ...Time used is 2000 cycles\nDraining remaining packets ...")
    print(f"Time taken is {cycles} cycles")
    if what == "short":
        return 255
    print("====== Overall Traffic Statistics ======\n====== Traffic class 0 ======")
    latency = "-nan" if what == "idle" else LATENCY_CYCLES
    print(f"Packet latency average = {latency} (1 samples)\n\tminimum = 9 (1 samples)")
    print("Network latency average = 60.1 (1 samples)\nFlit latency average = 40 (1 samples)")
    print(
        f"Accepted flit rate average = {values['injection_rate']} (1 samples)\n\tminimum = 0.09 (1 samples)"
    )
    print("Hops average = 3.5 (1 samples)\nTotal run time 0.93")
    return 255


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
