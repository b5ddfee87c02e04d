"""Mutants chosen at random for each file, run once, and written down."""

from __future__ import annotations

import json
import random
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

# What every child needs is imported before the first is made.
import hypothesis  # noqa: F401
import lanikai.hdl.emit
import lanikai.sim.build.model  # noqa: F401

from .own_tests import own_tests
from .places import text_at
from .rewrite import Mutant
from .runs import Baseline, BaselineFailed, baseline, digest, outcome

__all__ = ["Campaign"]


class Campaign:
    """A choice of `count` mutants a file by `seed`.

    - `cache`: a folder for what is known already: an interrupted run goes on where it stopped.
    - `result`: the JSON file of all files' results.
    """

    def __init__(self, *, seed: int, count: int, cache: Path, result: Path) -> None:
        self.seed, self.count, self.cache, self.result = seed, count, cache, result
        for name in ("baselines", "logs"):
            (cache / name).mkdir(parents=True, exist_ok=True)
        self._known = cache / "outcomes.jsonl"

    def file(self, file: str) -> int:
        """Run the mutants of `file`. Returns how many survived."""
        log = self.cache / "logs" / f"{file.replace('/', '.')}.log"
        started = time.monotonic()
        try:
            base = baseline(file, log=log, kept=self.cache / "baselines")
        except BaselineFailed as error:
            print(f"{file}: {error}", flush=True)
            return 0
        chosen = self.choice(file, base)
        print(f"{file}: {len(base.mutants)} mutants, {len(chosen)} of them run", flush=True)
        ends = [(mutant, self._outcome(mutant, base, log)) for mutant in chosen]
        left = [(mutant, told) for mutant, told in ends if told["end"] == "survived"]
        for mutant, told in left:
            print(f"  survived {told['tests']} tests: {_named(mutant)}", flush=True)
        self._write(file, base, ends, time.monotonic() - started)
        return len(left)

    def choice(self, file: str, base: Baseline) -> list[Mutant]:
        """The mutants that are run: all, or `count` at random."""
        mutants = sorted(base.mutants)
        if len(mutants) <= self.count:
            return mutants
        return sorted(random.Random(f"{self.seed}:{file}").sample(mutants, self.count))

    def _outcome(self, mutant: Mutant, base: Baseline, log: Path) -> dict[str, Any]:
        """The end of a mutant, from an earlier run if nothing changed that it depends on.

        One that was killed stays so while its file is the same. One that survived is run again when a test changed.
        """
        key = [mutant.file, digest([mutant.file]), list(mutant.span), mutant.change]
        tests = digest(own_tests(mutant.file))
        if self._known.exists():
            for line in self._known.read_text().splitlines():
                known = json.loads(line)
                if known["key"] == key and (known["end"] != "survived" or known["tests_digest"] == tests):
                    return known
        started = time.monotonic()
        ended = outcome(mutant, base, log=log)
        told: dict[str, Any] = {"key": key, "tests_digest": tests} | asdict(ended)
        told["seconds"] = round(time.monotonic() - started, 1)
        with self._known.open("a") as out:
            out.write(json.dumps(told) + "\n")
        return told

    def _write(self, file: str, base: Baseline, ends: list[tuple[Mutant, Any]], seconds: float) -> None:
        report = json.loads(self.result.read_text()) if self.result.exists() else {}
        counts = {
            end: sum(told["end"] == end for _, told in ends) for end in ("killed", "timed out", "survived")
        }
        survivors = [
            {
                "line": mutant.span[0],
                "text": text_at(file, mutant.span),
                "change": mutant.change,
                "tests": told["tests"],
            }
            for mutant, told in ends
            if told["end"] == "survived"
        ]
        files = report.get("files", {})
        files[file] = {
            "digest": digest([file]),
            "seed": self.seed,
            "possible": len(base.mutants),
            "run": len(ends),
            **counts,
            "survivors": survivors,
        }
        self.result.write_text(json.dumps({"files": dict(sorted(files.items()))}, indent=1) + "\n")
        print(f"  {counts} in {seconds:.0f} s", flush=True)


def _named(mutant: Mutant) -> str:
    return f"{mutant.file}:{mutant.span[0]}: {text_at(mutant.file, mutant.span)}: {mutant.change}"
