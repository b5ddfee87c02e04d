"""Every claim of every experiment fails when its subject is broken, and no claim is without such a test."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from lanikai.sim import experiments
from lanikai.sim.experiments.framework import runner
from lanikai.sim.experiments.framework.parameters import parse
from lanikai.sim.experiments.framework.run_folder import RunFolder
from lanikai.sim.experiments.registry import EXPERIMENTS, find
from support.system import mutants as mutants_module
from support.system.broken_claims import BROKEN, Broken

CHEAP = {("rate-table", "rate registers take every idt for one slot"), ("share-receiver", "senders die")}
"""Cases that `make test` runs, too: they take seconds, on the model that the other experiments on GM have built."""
ROOT = Path(experiments.__file__).parent
CASES = [
    pytest.param(
        one,
        id=str(one),
        marks=[pytest.mark.xdist_group("lanai4 cluster")]
        + ([] if (one.experiment, one.mutant) in CHEAP else [pytest.mark.full]),
    )
    for one in BROKEN
]


@pytest.fixture
def mutants():
    """The module of that name, importable in the pool's and the simulator's processes, too."""
    from support.system import mutants

    return mutants


@pytest.mark.parametrize("broken", CASES)
def test_a_claim_does_not_hold_when_its_mechanism_is_broken(broken: Broken, mutants, tmp_path: Path) -> None:
    experiment = find(broken.experiment)
    (tmp_path / "file").write_bytes(bytes(range(256)) * 16)
    settings = [one.replace("FILE", str(tmp_path / "file")) for one in broken.settings]
    parameters = parse(experiment, settings)
    points = [
        replace(point, spec={**point.spec, **broken.spec})
        for point in experiment.points(parameters, broken.size)
        if broken.keep(point)
    ]

    def execute():
        return runner.execute(
            experiment,
            parameters,
            points=points,
            size=broken.size,
            seed=1,
            folder=RunFolder(tmp_path / "run", experiment=experiment.name, size=broken.size, seed=1),
            backend=mutants.MutantSimulator(name=broken.mutant),
            workers=1,
        )

    report = execute()
    assert report.exit_status == 1
    for text in broken.claims:
        found = [claim for claim in report.claims if text in claim.text]
        assert found, (text, [claim.text for claim in report.claims])
        assert any(claim.holds is False for claim in found), found
    if broken.outside:
        assert False in [outcome.within for outcome in report.outcomes], report.outcomes


def names_in_mutants() -> Iterator[tuple[str, str, str]]:
    """Function, module and attribute (`Sdma.set_idt`) that each function of the mutants imports or replaces."""
    sources = (Path(import_module(name).__file__ or "").read_text() for name in mutants_module.MODULES)
    for function in (function for source in sources for function in ast.parse(source).body):
        imported: dict[str, str] = {}
        for node in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
            if isinstance(node, ast.ImportFrom) and node.module:
                for name in node.names:
                    imported[name.asname or name.name] = f"{node.module}:{name.name}"
        for local, origin in imported.items():
            module, name = origin.split(":")
            yield function.name, module, name
            for node in ast.walk(function):
                targets = node.targets if isinstance(node, ast.Assign) else []
                for target in map(ast.unparse, targets):
                    if target.startswith(f"{local}."):
                        yield function.name, module, name + target.removeprefix(local)


@pytest.mark.parametrize(("function", "module", "name"), sorted(set(names_in_mutants())))
def test_a_mutant_changes_what_there_is(function: str, module: str, name: str) -> None:
    """Most mutants run for long alone: a name that has moved is found here."""
    found = import_module(module)
    for part in name.split("."):
        if not hasattr(found, part):
            import_module(f"{found.__name__}.{part}")
        found = getattr(found, part)


def claims_in_code() -> Iterator[tuple[str, str]]:
    """Module and text, with gaps for what is put in, of every claim that the experiments make."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or path.name == "base.py":
                continue
            name = ast.unparse(node.func)
            if name not in ("Claim", "Claim.every", "Claim.unjudged"):
                continue
            if name == "Claim.unjudged":
                continue  # it is judged by nothing, and cannot fail
            text = next(
                (one.value for one in node.keywords if one.arg == "text"), node.args[0] if node.args else None
            )
            assert text is not None, f"{path.name}:{node.lineno}: a claim without a text"
            if isinstance(text, ast.Subscript):  # texts by name, as in fair_queueing
                yield from ((path.stem, one) for one in texts_by_name(path))
                continue
            yield path.stem, written(text, assigned(path, node.lineno))


def assigned(path: Path, line: int) -> dict[str, ast.expr]:
    """The names that the function at `line` of a module assigns before it, and their values."""
    found: dict[str, ast.expr] = {}
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef) and function.lineno <= line <= (function.end_lineno or 0):
            for node in ast.walk(function):
                if (
                    isinstance(node, ast.Assign)
                    and node.lineno < line
                    and isinstance(node.targets[0], ast.Name)
                ):
                    found[node.targets[0].id] = node.value
    return found


def written(text: ast.expr, names: dict[str, ast.expr]) -> str:
    """A text as it stands in the code: {} for what is put in. A name stands for the text that it was assigned."""
    if isinstance(text, ast.Constant):
        return str(text.value)
    if isinstance(text, ast.BinOp):
        return written(text.left, names) + written(text.right, names)
    if isinstance(text, ast.FormattedValue):
        text = text.value
    if isinstance(text, ast.Name) and isinstance(names.get(text.id), ast.Constant | ast.JoinedStr):
        return written(names[text.id], names)
    if isinstance(text, ast.JoinedStr):
        return "".join(written(one, names) for one in text.values).replace("{}{}", "{}")
    return "{}"


def texts_by_name(path: Path) -> Iterator[str]:
    """The values of the dictionary `texts` of a module."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "texts":
            assert isinstance(node.value, ast.Dict)
            yield from (str(ast.literal_eval(one)) for one in node.value.values)


def modules_of(name: str) -> set[str]:
    """The modules that an experiment's claims may stand in."""
    own = type(find(name)).__module__.rpartition(".")[2]
    return {own, f"{own}_claims", "gm_flows"}


def test_no_claim_is_without_a_mutant_that_breaks_it() -> None:
    known = list(claims_in_code())
    assert len(known) > 50
    for module, text in known:
        breaking = [
            one
            for one in BROKEN
            if module in modules_of(one.experiment) and any(part in text for part in one.claims)
        ]
        assert breaking, f"{module}: nothing breaks the claim {text!r}: add one to broken_claims.py"


def test_every_mutant_breaks_a_claim_that_is_there(mutants) -> None:
    known = list(claims_in_code())
    assert {one.experiment for one in BROKEN} == set(EXPERIMENTS)
    for one in BROKEN:
        assert one.mutant in mutants.MUTANTS and (one.claims or one.outside), str(one)
        for part in one.claims:
            assert any(module in modules_of(one.experiment) and part in text for module, text in known), (
                one,
                part,
            )
    assert {one.mutant for one in BROKEN} == set(mutants.MUTANTS)
