"""The pytest plugin in whose runs mutants are found, or made one at a time."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import hypothesis
import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module

from . import places
from .rewrite import Mutant, Rewriter

__all__ = ["PROOFS", "Plugin"]

PROOFS = "tests/formal/"
OUT_OF_TIME = ("took longer than", "DONE (TIMEOUT")
"""Words of a proof that ended without an answer: that says nothing of a mutant."""
PROOF_SECONDS = 20.0
"""The time that a test of proofs is taken to need, for their order: in a search for mutants they are not run."""


class Plugin:
    """A run of pytest, in which all mutants are found that its tests elaborate.

    - `instead`: what is done when the tests are collected; none of them is run. It is given this plugin, and may call
      `run_mutant` in children of this process. `result` is what it returned.
    - `found`: the mutants, and the tests in which each can be made.
    - `seconds`: the processor time of each test that ran, of its children too.
    - `failed`: the tests that failed, and the first line of why.
    """

    def __init__(self, *, instead: Callable[[Plugin], Any] | None = None) -> None:
        self.instead, self.result = instead, None
        self.found: dict[Mutant, set[str]] = defaultdict(set)
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: dict[str, str] = {}
        self._rewriter = Rewriter(None if instead else self._find)
        self._items: dict[str, pytest.Item] = {}
        self._test = ""
        self._fixtures: list[str] = []
        self._users: dict[str, set[str]] = defaultdict(set)

    def install(self) -> None:
        """Change Amaranth, and what else the mutant has to reach, in this process."""
        places.install()
        elaborate, plugin = Module.elaborate, self

        def changed(module: Module, platform: object) -> Any:
            return plugin._rewriter.fragment(elaborate(module, platform))

        Module.elaborate = changed
        if self.instead is None:
            from support.formal import harness

            # What a proof elaborates is enough.
            harness.prove = lambda spec, *_, **__: rtlil.convert(spec.m, name="spec", ports=spec.ports)

    def run_mutant(
        self, mutant: Mutant, order: Sequence[str], *, before: Callable[[str], None], budget_s: float | None
    ) -> dict[str, Any]:
        """Make `mutant` in this process, and run the tests of `order` until one fails; `before` is called with the
        name of each. `applied`: how often it was made, `failed`: the test that failed, `all`: whether all ran."""
        from lanikai.sim.build import model

        self._rewriter = Rewriter(active=mutant)
        # A simulator that is found by its configuration alone would be one without the mutant.
        known = model._writers_hash()
        model._writers_hash = lambda: f"{known} {mutant}"
        begun, ran = _processor_seconds(), 0
        items = [self._items[name] for name in order]
        for item, after in zip(items, [*items[1:], None], strict=True):
            if budget_s is not None and _processor_seconds() - begun > budget_s:
                break
            before(item.nodeid)
            ran += 1
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if self.failed:
                break
        return {"applied": self._rewriter.applied, "failed": self.failed, "all": ran == len(items)}

    def _find(self, mutant: Mutant) -> None:
        if self._fixtures:
            for test in self._users[self._fixtures[-1]]:
                self.found[mutant].add(test)
        elif self._test:
            self.found[mutant].add(self._test)

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        # The same cases in every run, and no time for the smallest one that fails.
        hypothesis.settings.register_profile(
            "mutation",
            deadline=None,
            derandomize=True,
            database=None,
            phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
        )
        hypothesis.settings.load_profile("mutation")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        for item in items:
            for name in getattr(item, "fixturenames", ()):
                self._users[name].add(item.nodeid)
            self._items[item.nodeid] = item

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if self.instead is None:
            return None
        self.result = self.instead(self)
        return True

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        # What a shared fixture elaborates is there in every test that has it.
        shared = fixturedef.scope != "function"
        if shared:
            self._fixtures.append(fixturedef.argname)
        yield
        if shared:
            self._fixtures.pop()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self._test, started = item.nodeid, _processor_seconds()
        yield
        proof = item.nodeid.startswith(PROOFS)
        self.seconds[item.nodeid] = PROOF_SECONDS if proof else _processor_seconds() - started
        self._test = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            text = crash.message if crash else report.longreprtext
            if any(words in text for words in OUT_OF_TIME):
                return
            self.failed[report.nodeid] = text.strip().partition("\n")[0][:200]


def _processor_seconds() -> float:
    """The processor time of this process and of its children that ended."""
    return sum(os.times()[:4])
