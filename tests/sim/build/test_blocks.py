"""A system of blocks (`native/blocks.h`), on small blocks written by hand: the same whatever is left out, and however
many threads there are."""

import subprocess
from pathlib import Path
from random import Random

import lanikai.sim.build.model as building
import pytest
from lanikai.sim.build.compiler import compiler

NATIVE = Path(building.__file__).parents[1] / "native"
SOURCE = Path(__file__).parents[2] / "support" / "sim" / "blocks_model.cpp"


def compiled(folder, *, mutate=None):
    """The executable of the model, with a text of a header replaced: (header, text, replacement)."""
    for header in NATIVE.glob("*.h"):
        text = header.read_text()
        if mutate and header.name == mutate[0]:
            assert mutate[1] in text, "the mutant's text is not there"
            text = text.replace(mutate[1], mutate[2])
        (folder / header.name).write_text(text)
    target = folder / "model"
    command = [
        compiler().path,
        "-std=gnu++17",
        "-O0",
        f"-I{folder}",
        str(SOURCE),
        "-o",
        str(target),
        "-pthread",
    ]
    subprocess.run(command, check=True)
    return target


def play(model, threads, *, width=5, height=4, cycles=4000, seed=1, mean=20):
    """The model's output: hashes of all that could be seen, and the share of evaluations saved (percent)."""
    arguments = [str(value) for value in (threads, width, height, cycles, seed, mean)]
    done = subprocess.run([str(model), *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    *hashes, saved = done.stdout.split()
    return hashes, float(saved)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("blocks"))


def test_the_same_with_any_number_of_threads(model):
    """A plain loop that evaluates every block in every cycle sees the same, at loads from full to almost none."""
    random = Random(20)
    for mean in (4, 20, 120, 2000):
        seed = random.randrange(1 << 31)
        case = {
            "seed": seed,
            "mean": mean,
            "width": random.randrange(2, 9),
            "height": random.randrange(3, 8),
        }
        print(case)
        expected, _ = play(model, 0, **case)
        for threads in (1, 2, 3):
            found, saved = play(model, threads, **case)
            assert found == expected, (threads, case)
            assert saved > {4: 0, 20: 20, 120: 70, 2000: 95}[mean]


WOKEN = "mail.woken[parity][target.instance / 64] |="
ORDER = "return a.instance < b.instance;"
FAULTS = {
    "no barrier": ("blocks.h", "crew_.wait();", ""),
    "no wake across a cut": ("part.h", WOKEN, f"if (from == self_) {WOKEN}"),
    "calls in another order": ("turns.h", ORDER, "return &a < &b && false;"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_system_with_a_fault_is_told_apart(tmp_path, fault):
    """The equality above can fail."""
    case = {"seed": 7, "mean": 12, "width": 8, "height": 8, "cycles": 20_000}
    faulty = compiled(tmp_path, mutate=FAULTS[fault])
    expected, _ = play(faulty, 1, **case)
    assert any(play(faulty, 2, **case)[0] != expected for _ in range(5))
