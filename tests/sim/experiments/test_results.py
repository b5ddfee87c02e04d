"""Results: the JSON object's keys, the CSV, the run's folder, units."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path

import jsonschema
import pytest
from lanikai.sim import units
from lanikai.sim.errors import UserError
from lanikai.sim.experiments.framework.base import Claim, Outcome, Point
from lanikai.sim.experiments.framework.display import result_table, show
from lanikai.sim.experiments.framework.results import Report, rows, write_csv
from lanikai.sim.experiments.framework.run_folder import RunFolder, check_file
from lanikai.sim.experiments.framework.schemas import schema_of
from lanikai.sim.experiments.registry import EXPERIMENTS
from lanikai.sim.folder_lock import LOCK
from rich.console import Console

BY_FLOW = ["idt_ticks", "bandwidth_*"]


def outcome(achieved: list[float], *, published: list[float] | None = None) -> Outcome:
    point = Point(
        label="a point",
        parameters={"idt_ticks": [192, 384], "sizes": [1, 2, 3], "message_bytes": 65536},
        spec={},
        published=published and {"bandwidth_mb_per_s": published},
        tolerance=published and {"bandwidth_mb_per_s": 0.03},
    )
    return Outcome(
        point=point, results={"bandwidth_mb_per_s": achieved}, seed=3, cycles=500, wall_seconds=0.25
    )


def report(*outcomes: Outcome, holds: bool = True) -> Report:
    return Report(
        experiment="share-senders",
        size="quick",
        seed=1,
        outcomes=outcomes,
        claims=[Claim(text="it is so", holds=holds)],
        build_seconds=2.0,
        build_cached=False,
        files={"csv": "results.csv"},
    )


def test_the_json_object_has_the_keys_that_scripts_rely_on():
    found = json.loads(report(outcome([40.0, 20.0], published=[40.0, 20.0]), outcome([1.0, 2.0])).json_text())
    assert list(found) == [
        *("experiment", "size", "seed", "parameters", "command", "versions"),
        *("cycles", "wall_seconds", "cycles_per_second"),
        *(
            "build_seconds",
            "build_cached",
            "points",
            "claims",
            "claims_not_judged",
            "failures",
            "notes",
            "files",
        ),
    ]
    assert list(found["versions"]) == ["lanikai", "python", "amaranth", "cocotb", "verilator"]
    assert all(found["versions"].values())
    assert (found["cycles"], found["wall_seconds"], found["cycles_per_second"]) == (1000, 0.5, 2000.0)
    keys = ["label", "parameters", "results", "published", "tolerance", "within", "seed", "cycles"]
    assert [list(point) for point in found["points"]] == [keys, keys]
    assert [point["within"] for point in found["points"]] == [True, None]
    assert found["points"][1]["published"] is found["points"][1]["tolerance"] is None
    assert found["claims"] == [{"text": "it is so", "holds": True}] and found["claims_not_judged"] == []


def test_the_json_object_is_as_its_schema_says():
    """That of `lanikai schema results`, whose keys are all there."""
    schema = schema_of("results", EXPERIMENTS)
    found = json.loads(report(outcome([40.0, 20.0], published=[40.0, 20.0]), outcome([1.0, 2.0])).json_text())
    jsonschema.validate(found, schema)
    assert schema["properties"].keys() == found.keys()
    for key in found:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({name: value for name, value in found.items() if name != key}, schema)


def test_the_exit_status_is_zero_only_if_all_is_within_and_every_claim_holds():
    good, bad = outcome([40.0], published=[40.0]), outcome([40.0], published=[50.0])
    assert report(good).exit_status == 0
    assert report(good, outcome([1.0])).exit_status == 0
    assert report(good, bad).exit_status == 1
    assert report(good, holds=False).exit_status == 1


def test_the_csv_has_a_row_a_flow(tmp_path):
    write_csv(
        tmp_path / "a.csv", [outcome([40.0, 20.5], published=[41.0, 20.0]), outcome([1.0, 2.0])], BY_FLOW
    )
    with (tmp_path / "a.csv").open() as file:
        found = list(csv.DictReader(file))
    assert [(row["point"], row["flow"]) for row in found] == [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")]
    assert [row["idt_ticks"] for row in found] == ["192", "384"] * 2
    assert [row["bandwidth_mb_per_s"] for row in found] == ["40.0", "20.5", "1.0", "2.0"]
    assert [row["published_bandwidth_mb_per_s"] for row in found] == ["41.0", "20.0", "", ""]
    assert found[0]["sizes"] == "[1, 2, 3]" and found[0]["message_bytes"] == "65536"
    assert [row["within"] for row in found] == ["true", "true", "", ""]


def test_a_point_without_flows_is_one_row():
    """This holds with lists among its parameters, too. An empty list has no value for the flow that is not there."""
    parameters = {"file": "a", "shares": [1.0], "lengths": []}
    point = Point(label="", parameters=parameters, spec={})
    found = list(
        rows([Outcome(point=point, results={"x": 1.5}, seed=1, cycles=2, wall_seconds=1.0)], ["shares", "x"])
    )
    lists = {"shares": "[1.0]", "lengths": "[]"}
    assert found == [
        {"point": 0, "flow": None, "file": "a", **lists, "x": 1.5, "within": None, "seed": 1, "cycles": 2}
    ]


def test_lists_are_dealt_out_by_declaration_and_not_by_their_length(tmp_path):
    """The lists are a parameter that is as long as the flows, one of lists, and a result that is none of the flows'."""
    point = Point(
        label="",
        parameters={"pair": [7, 8], "reserve": [[0, 1], [2, 3]], "idt_ticks": [5, 6], "few": [9]},
        spec={},
        published={"bandwidth_mb_per_s": [1.0, 2.0]},
        tolerance={"bandwidth_mb_per_s": 0.1},
    )
    other = Point(
        label="", parameters={"pair": [7, 8], "reserve": [], "idt_ticks": [5, 6], "few": []}, spec={}
    )
    results = {"bandwidth_mb_per_s": [1.0, 2.0], "counts": [3, 4], "nested": [[1], [2]]}
    outcomes = [
        Outcome(point=one, results=results, seed=1, cycles=2, wall_seconds=1.0) for one in (point, other)
    ]
    write_csv(tmp_path / "a.csv", outcomes, [*BY_FLOW, "nested", "few"])
    with (tmp_path / "a.csv").open() as file:
        found = list(csv.DictReader(file))
    assert [row["flow"] for row in found] == ["0", "1"] * 2
    assert [row["pair"] for row in found] == ["[7, 8]"] * 4 and {row["counts"] for row in found} == {"[3, 4]"}
    assert [row["reserve"] for row in found] == ["[[0, 1], [2, 3]]"] * 2 + ["[]"] * 2
    assert [row["idt_ticks"] for row in found] == ["5", "6"] * 2
    assert [row["nested"] for row in found] == ["[1]", "[2]"] * 2 and [row["few"] for row in found] == [
        "9",
        "",
        "",
        "",
    ]
    assert [row["published_bandwidth_mb_per_s"] for row in found] == ["1.0", "2.0", "", ""]


def test_every_run_has_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = [RunFolder(None, experiment="e", size="quick", seed=4).path for _ in range(3)]
    assert len(set(made)) == 3
    assert all(path.is_dir() and str(path).startswith("results/e-quick-seed4-") for path in made)


def test_a_discarded_folder_leaves_nothing(tmp_path):
    folder = RunFolder(tmp_path / "a" / "b", experiment="e", size="quick", seed=1)
    folder.file("results.csv").write_text("x")
    folder.discard()
    assert list(tmp_path.iterdir()) == []


def folder_of(path: Path) -> RunFolder:
    return RunFolder(path, experiment="e", size="quick", seed=1)


@pytest.mark.parametrize("name", ["mine.txt", "run.log", "points/a", RunFolder.MARK])
def test_a_folder_of_somebody_elses_files_is_refused_and_kept(tmp_path, name):
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("keep")
    with pytest.raises(UserError, match=r"is not empty and no run made it: name a new folder, an empty one"):
        folder_of(tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [file]
    assert file.read_text() == "keep"


def test_an_earlier_runs_folder_is_taken_again_and_keeps_what_is_not_ours(tmp_path):
    first = folder_of(tmp_path)
    first.file("run.log").write_text("of an earlier run")
    first.keep()
    (tmp_path / "mine.txt").write_text("keep")
    folder = folder_of(tmp_path)
    assert (tmp_path / "run.log").exists()
    folder.clear()
    assert not (tmp_path / "run.log").exists() and (tmp_path / "mine.txt").exists()
    folder.file("points").mkdir()
    folder.keep()
    assert visible(tmp_path) == [RunFolder.MARK, "mine.txt", "points"]


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != LOCK)


@pytest.mark.parametrize("killed", [False, True], ids=["interrupted", "killed"])
def test_a_run_that_does_not_end_gives_back_the_earlier_ones_files(tmp_path, killed):
    """The run gives them back at once if it can; if it was killed, the next run does."""
    first = folder_of(tmp_path)
    first.file("run.log").write_text("of an earlier run")
    first.keep()
    second = folder_of(tmp_path)
    second.clear()
    second.file("points").mkdir()
    second.file("run.log").write_text("half")
    if killed:
        second._unlock()  # as the system does
        third = folder_of(tmp_path)
        third.discard()
    else:
        second.discard()
    assert visible(tmp_path) == [RunFolder.MARK, "run.log"]
    assert (tmp_path / "run.log").read_text() == "of an earlier run"


@pytest.mark.parametrize("ends", ["clear", "discard", "keep"])
def test_an_earlier_run_is_whole_wherever_a_run_is_stopped(tmp_path, monkeypatch, ends):
    """A run is stopped in each of its moves of a file, one after the other, there and back, by Ctrl-C or a kill.

    In the end all files of the earlier run are there, or all of the new one, once that stands.
    """

    def stopped(at: int, killed: bool) -> bool:
        """Whether there was a move `at`."""
        out = tmp_path / f"{at}{killed}"
        first = folder_of(out)
        for name in ("results.csv", "plot.png", "run.log"):
            first.file(name).write_text("earlier")
        first.keep()
        second = folder_of(out)
        left, rename = at, Path.rename

        def move(path: Path, target: Path) -> Path:
            nonlocal left
            left -= 1
            if left == -1:
                raise KeyboardInterrupt
            return rename(path, target)

        reached, new = False, "earlier"
        if ends == "clear":
            monkeypatch.setattr(Path, "rename", move)
        try:
            second.clear()
            for name in ("results.csv", "plot.png", "run.log"):
                second.file(name).write_text("later")
            monkeypatch.setattr(Path, "rename", move)
            if ends == "keep":
                second.keep()
                new = "later"
            elif ends == "discard":
                second.discard()
        except KeyboardInterrupt:
            reached = True
        monkeypatch.setattr(Path, "rename", rename)
        if second._lock is not None and not killed:
            second.discard()
        second._unlock()
        third = folder_of(out)
        third.discard()
        assert visible(out) == [RunFolder.MARK, "plot.png", "results.csv", "run.log"]
        assert {(out / name).read_text() for name in ("results.csv", "plot.png", "run.log")} == {new}
        return reached

    for killed in (False, True):
        moves = 0
        while stopped(moves, killed):
            moves += 1
        assert moves == {"clear": 4, "discard": 4, "keep": 1}[ends]


def test_two_runs_do_not_share_a_folder(tmp_path):
    first = folder_of(tmp_path)
    first.file("run.log").write_text("mine")
    for _ in range(2):
        with pytest.raises(
            UserError, match=r"is in use: another run writes into it; wait for its end, or name"
        ):
            folder_of(tmp_path)
    assert (tmp_path / "run.log").read_text() == "mine"
    first.keep()
    folder_of(tmp_path).keep()


def test_an_empty_folder_is_taken_and_left_empty(tmp_path):
    folder = folder_of(tmp_path)
    folder.clear()
    folder.file("points").mkdir()
    folder.discard()
    assert tmp_path.is_dir() and list(tmp_path.iterdir()) == []


def test_links_are_followed_to_no_other_folder(tmp_path):
    mine, out = tmp_path / "mine", tmp_path / "out"
    mine.mkdir()
    (mine / "precious").touch()
    folder_of(out).keep()
    (out / "points").symlink_to(mine)
    (out / "run.log").symlink_to(mine / "precious")
    again = folder_of(out)
    again.clear()
    again.keep()
    assert visible(out) == [RunFolder.MARK]
    assert (mine / "precious").exists()
    # A mark that is a link proves nothing; a link to nothing is no folder.
    (mine / RunFolder.MARK).symlink_to(out / RunFolder.MARK)
    with pytest.raises(UserError, match="no run made it"):
        folder_of(mine)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UserError, match="it is a link to what is not there"):
        folder_of(tmp_path / "dangling")


def test_what_cannot_be_written_is_said_before_anything_is_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"output folder '.*file/run' cannot be written: Not a directory"):
        RunFolder(tmp_path / "file" / "run", experiment="e", size="quick", seed=1)
    with pytest.raises(UserError, match="cannot be written: "):
        RunFolder(tmp_path / "file", experiment="e", size="quick", seed=1)
    with pytest.raises(UserError, match="cannot be written: there is no folder"):
        check_file(tmp_path / "none" / "r.json", "--json")
    with pytest.raises(UserError, match="cannot be written: it is a folder"):
        check_file(tmp_path, "--json")
    check_file(tmp_path / "r.json", "--json")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_units():
    # 4096 bytes every 500 ticks of 0.5 us: 16.384 MB/s ([rtc] of published.toml), 8250 cycles of 33 MHz.
    assert units.mb_per_s(4096, 8250, 33_000_000) == pytest.approx(16.384)
    assert units.microseconds(33, 33_000_000) == 1.0
    assert units.seconds(33_000_000, 33_000_000) == 1.0
    with pytest.raises(ValueError, match="at least one cycle"):
        units.mb_per_s(1, 0, 1)


def test_the_checkout_keeps_its_own_cache(monkeypatch, tmp_path):
    from lanikai.sim import paths

    monkeypatch.delenv(paths.CACHE_VARIABLE, raising=False)
    assert paths.cache_dir() == Path(__file__).resolve().parents[3] / ".cache" / "lanikai"
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(tmp_path))
    assert paths.cache_dir() == tmp_path


def test_a_claim_that_is_not_judged_is_said_so_and_fails_nothing(capsys):
    judged, left = (
        Claim(text="it is so", holds=True),
        Claim.unjudged("it is more", "message_bytes is not 65536"),
    )
    found = Report(
        experiment="share-senders",
        size="quick",
        seed=1,
        outcomes=[outcome([1.0, 2.0])],
        claims=[judged, left],
        build_seconds=2.0,
        build_cached=False,
    )
    assert found.exit_status == 0
    facts = found.as_json()
    # `holds` stays true or false, as scripts rely on.
    assert facts["claims"] == [{"text": "it is so", "holds": True}]
    assert facts["claims_not_judged"] == [{"text": "it is more", "why": "message_bytes is not 65536"}]
    show(Console(width=200, no_color=True), found)
    assert "not judged: it is more. Why: message_bytes is not 65536" in capsys.readouterr().out


def test_a_claim_on_nothing_does_not_hold():
    assert Claim.every("all are so", []).holds is None
    assert Claim.every("all are so", [], nothing="no IDT is below 96").not_judged == "no IDT is below 96"
    assert Claim.every("all are so", [True, True]).holds is True
    assert Claim.every("all are so", [True, False]).holds is False
    assert Claim.every("all are so", [True]).unless("").holds is True
    assert Claim.every("all are so", [False]).unless("elsewhere").not_judged == "elsewhere"
    for bad in ({"holds": None}, {"holds": True, "not_judged": "why"}):
        with pytest.raises(ValueError, match="claim 'x' is judged, or says why it is not"):
            Claim(text="x", **bad)


def test_the_table_shows_the_first_of_many_values():
    """All of them are in the files. Those that are held against published ones are shown."""
    many = [float(i) for i in range(40)]
    for published, rows_of_it in ((None, 17), (many, 40)):
        table = result_table([outcome(many, published=published)], BY_FLOW)
        assert table.row_count == rows_of_it
    console = Console(width=80, file=StringIO())
    console.print(result_table([outcome(many)], BY_FLOW))
    assert "24 more" in console.file.getvalue()
