"""`lanikai report`: what it takes and refuses, what is in its pages, how large and how fast it is."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from html import unescape
from pathlib import Path

import polars
import pytest
from lanikai.sim.cli import program
from lanikai.sim.errors import UserError
from lanikai.sim.report import page, reproduction
from lanikai.sim.report.compare import compared
from lanikai.sim.report.folders import read_folders
from lanikai.sim.report.latency import percentile
from lanikai.sim.report.measured import lines, of_run, of_sweep, student_factors
from lanikai.sim.report.network_map import _drawn, places
from lanikai.sim.report.report import make_report
from lanikai.sim.report.timeline import Span, trace_spans
from lanikai.sim.report.verdicts import run_verdict
from lanikai.sim.report.words import label, number
from lanikai.sim.waves.packet_trace import Passage, State, trace_events
from support.sim.report_folders import (
    load_run,
    run_facts,
    shares,
    sweep_rows,
    write_run,
    write_sweep,
)

MOST_BYTES = 8_000_000
MOST_SECONDS = 60
"""Bounds of a sweep of 1,000 points of 4 flows, on a machine with other work."""


def report(*arguments: object) -> int:
    """The exit status of `lanikai report`."""
    with pytest.raises(SystemExit) as caught:
        program.main(["report", *map(str, arguments)])
    return int(caught.value.code or 0)


def own_text(html: str) -> str:
    """The HTML without the library."""
    return re.sub(r'<script type="application/octet-stream".*?</script>', "", html, flags=re.DOTALL)


def test_a_report_is_written_into_the_folder_or_where_the_user_says(tmp_path, capsys):
    folder = write_run(tmp_path / "run", shares())
    assert report(folder) == 0
    told = capsys.readouterr().out
    assert re.fullmatch(rf"{folder}/report\.html: \d\.\d MB in \d+\.\d s\n", told)
    assert report(folder, "--out", tmp_path / "x.html") == 0
    assert (folder / "report.html").read_bytes() == (tmp_path / "x.html").read_bytes()
    assert sorted(one.name for one in folder.iterdir()) == ["plot.png", "report.html", "results.json"]


def test_a_report_goes_where_a_link_leads(tmp_path):
    folder = write_run(tmp_path / "run", shares())
    (tmp_path / "link.html").symlink_to(tmp_path / "real.html")
    assert report(folder, "--out", tmp_path / "link.html") == 0
    assert (tmp_path / "link.html").is_symlink() and (tmp_path / "real.html").stat().st_size > 1_000_000


def broken_folders(root: Path) -> dict[str, Path]:
    """Folders that no report can be made of."""
    (root / "empty").mkdir(parents=True)
    (root / "file").write_text("x")
    found = {"missing": root / "nothing", "empty": root / "empty", "file": root / "file"}
    texts = {
        "not JSON": "{",
        "a list": "[]",
        "no points": json.dumps({"experiment": "x", "size": "quick", "seed": 1, "claims": []}),
        "points of text": json.dumps(run_facts("x", ["a"])),
        "a point without results": json.dumps(run_facts("x", [{"parameters": {}}])),
        "a claim without text": json.dumps(run_facts("x", [], claims=[{"holds": True}])),
        "a key twice": '{"experiment": "x", "experiment": "y"}',
        "no text": "\ufeff\x00",
        "too deep": "[" * 100_000,
    }
    for name, text in texts.items():
        folder = root / name.replace(" ", "-")
        folder.mkdir()
        (folder / "results.json").write_text(text)
        found[name] = folder
    found["a table that is none"] = load_run(root / "no-table")
    (found["a table that is none"] / "tables" / "links.parquet").write_bytes(b"PAR1")
    found["a table without a column"] = load_run(root / "no-column")
    other = root / "no-column" / "tables"
    (other / "links.parquet").write_bytes((other / "latency.parquet").read_bytes())
    found["a sweep without points"] = write_sweep(root / "empty-sweep", [])
    found["a sweep without a table"] = write_sweep(root / "begun-sweep", sweep_rows(2))
    (root / "begun-sweep" / "table.parquet").unlink()
    found["a sweep whose table is none"] = write_sweep(root / "bad-sweep", sweep_rows(2))
    (root / "bad-sweep" / "table.parquet").write_bytes(b"nothing")
    found["a sweep whose grid is none"] = write_sweep(root / "bad-grid", sweep_rows(2), grid=3)
    return found


def test_a_folder_that_is_none_or_broken_is_one_line_and_status_2(tmp_path, capsys):
    for name, folder in broken_folders(tmp_path / "all").items():
        assert report(folder) == 2, name
        told = capsys.readouterr()
        assert told.out == "" and told.err.startswith("lanikai: "), (name, told)
        # A long line is folded to the width of the terminal; it is one message all the same.
        assert "Traceback" not in told.err and told.err.count("lanikai: ") == 1, name
        assert folder.name in told.err.replace("\n", ""), (name, told.err)
        assert not folder.is_dir() or not (folder / "report.html").exists()


def test_a_broken_folder_among_others_is_named_in_the_report(tmp_path):
    write_run(tmp_path / "good", shares())
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "results.json").write_text("{")
    html = own_text(make_report([tmp_path]))
    assert "Not read: results" in html and "share-senders" in html


def test_a_file_that_cannot_be_written_is_one_line_and_leaves_nothing(tmp_path, capsys):
    folder = write_run(tmp_path / "run", shares())
    for out in (tmp_path / "no" / "x.html", tmp_path, "/proc/x.html"):
        assert report(folder, "--out", out) == 2
        assert str(out) in capsys.readouterr().err.replace("\n", "")
    (folder / "report.html").mkdir()
    assert report(folder) == 2
    assert "it is a folder" in capsys.readouterr().err
    for words in (["", "a name"], [folder, "--out", " "]):
        assert report(*words) == 2
    full = Path("/dev/full")
    if full.is_char_device() and os.access(full, os.W_OK):
        assert report(folder, "--out", full) == 1
        assert full.is_char_device() and "No space left" in capsys.readouterr().err


def test_without_the_libraries_one_line_says_how_to_get_them(tmp_path):
    folder = write_run(tmp_path / "run", shares())
    for missing in ("plotly", "jinja2"):
        code = (
            f"import sys; sys.modules[{missing!r}] = None\nfrom lanikai.sim.cli.program import main; main()"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, "report", str(folder)], capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode == 3 and "pip install 'lanikai[report]'" in done.stderr
        assert len(done.stderr.splitlines()) == 1 and not (folder / "report.html").exists()


def test_the_same_folder_gives_the_same_bytes(tmp_path):
    folder = load_run(tmp_path / "run")
    assert make_report([folder]) == make_report([folder])


def test_no_address_of_another_machine_stands_in_the_page(tmp_path):
    html = own_text(make_report([load_run(tmp_path / "run")]))
    assert "://" not in html and "default-src 'none'" in unescape(html)
    assert not re.search(r"""(?:src|href)=["'](?!data:|#)""", html)


def test_a_report_says_what_a_run_has_not_measured(tmp_path):
    html = own_text(make_report([write_run(tmp_path / "run", shares())]))
    for words in (
        "No distribution of latencies was measured",
        "links were not counted",
        "No time series was measured",
        "How full buffers were was not measured",
        "way of single messages was not recorded",
    ):
        assert words in html


def test_the_map_shows_buffers_where_they_were_looked_at(tmp_path):
    plain = own_text(make_report([load_run(tmp_path / "plain")]))
    assert (
        "How full the buffers of routers were was not measured" in plain and "routers, buffers" not in plain
    )
    folder = load_run(tmp_path / "run")
    rows = [
        {"point": 2, "seed": 11, "router": router, "port": port}
        | {"input_use": 0.2 * router, "output_use": 0.5, "blocked": 0.1}
        for router in range(4)
        for port in range(3)
    ]  # fmt: skip
    polars.DataFrame(rows).write_parquet(folder / "tables" / "buffers.parquet")
    html = own_text(make_report([folder]))
    for words in ("routers, buffers under 5%", "routers, buffers 5% to 25%", "buffers over 50%"):
        assert words in html
    assert (
        "Use of the buffers of each port, load 0.8" in html and "buffers of each port, load 0.5" not in html
    )
    assert "router 3: 60.0% of input buffers in use" in html


SPAN = {"point": 0, "seed": 1, "message": 7}


def test_a_timeline_is_drawn_of_a_table_and_of_a_trace(tmp_path):
    rows = [
        SPAN | {"lane": "bus, sender", "stage": "descriptor", "begin_cycle": 100, "end_cycle": 130},
        SPAN | {"lane": "link", "stage": "send", "begin_cycle": 140, "end_cycle": 200},
        SPAN | {"lane": "link", "stage": "other", "begin_cycle": 150, "end_cycle": 160, "message": -1},
    ]
    facts = run_facts("via-anatomy", [{"parameters": {"design": "Base"}, "results": {"x_us": 1}}])
    folder = write_run(tmp_path / "run", facts, {"timeline": rows})
    events = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "router 3"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "port 1"}},
        {"ph": "X", "name": "cross", "pid": 1, "tid": 2, "ts": 5.0, "dur": 2.0, "args": {"packet": 9}},
        {"ph": "B", "name": "wait", "pid": 4, "tid": 1, "ts": 1},
        {"ph": "E", "pid": 4, "tid": 1, "ts": 4},
        {"ph": "i", "name": "mark", "pid": 4, "ts": 4},
    ]
    (folder / "trace.json").write_text(json.dumps({"traceEvents": events}))
    assert trace_spans(folder / "trace.json") == [
        Span("process 4", "wait", "wait", 1, 4),
        Span("router 3, port 1", "packet 9", "cross", 5.0, 7.0),
    ]
    html = own_text(make_report([folder]))
    for words in (
        "Timeline, point 0",
        "message 7",
        "no message",
        "bus, sender",
        "router 3, port 1",
        "packet 9",
    ):
        assert words in html
    assert re.search(r">40</td>[^>]*>100</td>[^>]*>60</td>", html)  # from the first span on
    for text in ("{}", '{"traceEvents": 3}', "[1]"):
        (folder / "trace.json").write_text(text)
        with pytest.raises(UserError, match="no list of trace events"):
            make_report([folder])


def through_routers(first, sequence):
    """A packet from node 0 by routers 0 and 1 to node 1: its head takes 5 cycles from end to end, its tail is 3 behind.
    At router 1 it waits for 20 cycles."""
    fields = {"source": 0, "destination": 1, "kind": 0, "flow": 2, "sequence_number": sequence}
    ends = [("node0", "tx"), ("router0", "port0_rx"), ("router0", "port1_tx"), ("router1", "port0_rx"),
            ("router1", "port1_tx"), ("node1", "rx")]  # fmt: skip
    times = [first, first + 5, first + 10, first + 15, first + 40, first + 45]
    return [
        Passage(place=place, end=end, vl=1, first=time, last=time + 3, flits=4, fields=fields)
        for (place, end), time in zip(ends, times, strict=True)
    ]


def test_every_router_on_the_way_of_a_packet_is_a_lane(tmp_path):
    """The trace is as `lanikai waves --trace` writes it, at its place."""
    busy = [State(place="node0", track="host bus", first=at, cycles=10, name="READ") for at in (95, 5_000)]
    cut = Passage(place="router1", end="port0_rx", vl=0, first=90, last=93, flits=4, fields={"source": 3})
    events = trace_events([*through_routers(100, 7), *through_routers(104, 8), cut], busy)
    facts = run_facts("network-load", [{"parameters": {"load": 0.1}, "results": {"x": 1}}])
    folder = write_run(tmp_path / "run", facts, {})
    file = folder / "points" / "0" / "point.trace.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"traceEvents": events}))
    spans = trace_spans(file)
    name = "packet 7, 0 to 1, flow 2"
    assert [span for span in spans if span.message == name] == [
        Span("node0", name, "tx VL 1", 100, 104),
        Span("router0", name, "port0_rx VL 1, then port1_tx VL 1", 105, 114),
        Span("router1", name, "port0_rx VL 1, then port1_tx VL 1", 115, 144),
        Span("node1", name, "rx VL 1", 145, 149),
    ]
    assert len([span for span in spans if span.message == "packet 8, 0 to 1, flow 2"]) == 4
    assert [span.lane for span in spans if span.message == "no message"] == ["node0, host bus"] * 2
    html = own_text(make_report([folder]))
    for words in ("point.trace.json", name, "router0", "router1", "node0, host bus", "cycles"):
        assert words in html
    assert html.count(">READ<") == 1  # the second one is long after the packets


def test_the_tables_of_a_sweep_belong_to_its_points(tmp_path):
    folder = write_sweep(tmp_path / "sweep", sweep_rows(40))
    row = {"set_network": "router4", "set_seed": 0, "point": 1, "class": 0, "packets": 5000}
    rows = [row | {"set_packet_flits": length, "last_cycles": 10 * length} for length in (8, 9)]
    (folder / "tables").mkdir()
    polars.DataFrame(rows).write_parquet(folder / "tables" / "latency.parquet")
    html = own_text(make_report([folder]))
    found = re.findall(r"<tr><th[^>]*>(packet flits [^<]*)</th>.*?>(\d+)</td></tr>", html)
    assert found == [("packet flits 8, load 0.18", "80"), ("packet flits 9, load 0.18", "90")]


def test_values_without_a_tolerance_stand_beside_ours(tmp_path):
    points = [
        {
            "parameters": {"workload": 1, "strategy": "sb", "published_completion_s": 124},
            "results": {"completion_s": 98.0},
        }
    ]
    run = read_folders([write_run(tmp_path / "cosched", run_facts("cosched", points))])
    (one,) = compared(run)
    assert (one.achieved, one.published, one.tolerance, one.within) == (98.0, 124, None, None)
    assert run_verdict(run).values == 0
    points = [
        {"parameters": {"variant": "small_fast", "load": 0.7}, "results": {"dmp": 0.1, "dmt_ms": 0.009}},
        {"parameters": {"variant": "small_fast", "load": 0.5}, "results": {"dmp": 0.1, "dmt_ms": 0.009}},
    ]
    run = read_folders([write_run(tmp_path / "wrr", run_facts("wrr-variants", points))])
    assert [(one.result, one.published) for one in compared(run)] == [("dmp", 0.027), ("dmt_ms", 0.038)]
    assert "by claims" in own_text(make_report([tmp_path / "wrr"]))


def test_the_command_parameters_versions_and_reasons_stand_in_the_page(tmp_path):
    facts = shares((30.0, 41.0))
    html = own_text(make_report([write_run(tmp_path / "run", facts)]))
    assert facts["command"] in html and "5.48" in html and "1 of 2 published values within tolerance" in html
    facts.pop("command")
    facts.pop("parameters")
    old = write_run(tmp_path / "old", facts)
    (old / "run.log").write_text("version of x: 1\nparameter idt_over_T = [2]\n\npoint 0: parameter b = 2\n")
    html = own_text(make_report([old]))
    assert "did not keep its command" in html and "idt_over_T" in html


def test_verdicts_count_values_and_claims(tmp_path):
    found = read_folders([write_run(tmp_path / "run", shares((30.0, 41.0)))])
    verdict = run_verdict(found)
    assert (verdict.within, verdict.values, verdict.held, verdict.claims) == (1, 2, 1, 1)
    assert (verdict.tone, verdict.word) == ("bad", "OUT")
    nothing = read_folders([write_run(tmp_path / "nothing", run_facts("x", [], claims=[]))])
    assert (run_verdict(nothing).tone, run_verdict(nothing).word) == ("unsure", "not judged")


def test_several_seeds_become_a_mean_with_its_interval(tmp_path):
    measured = of_run(read_folders([load_run(tmp_path / "run")]))
    assert measured.varying() == ["load", "class"] and measured.of_flows() == ["class_shares"]
    assert len(measured.rows) == 18 and len(measured.together()) == 9
    (line,) = lines(measured.together(), "load", "latency_mean_cycles", [], label)
    values = [row["latency_mean_cycles"] for row in measured.together() if row["load"] == 0.2]
    assert line.x == [0.2, 0.5, 0.8] and line.y[0] == pytest.approx(sum(values) / 3)
    spread = (sum((one - line.y[0]) ** 2 for one in values) / 2 / 3) ** 0.5
    assert line.half[0] == pytest.approx(4.303 * spread)
    assert student_factors()[:2] == pytest.approx([12.706, 4.303])


def test_the_rows_of_a_sweep_have_their_parameters_by_one_name(tmp_path):
    measured = of_sweep(read_folders([write_sweep(tmp_path / "sweep", sweep_rows(40, flows=2))]))
    assert measured.varying() == ["packet_flits", "load", "class"]
    assert "network" in measured.parameters and "set_network" not in measured.rows[0]
    assert "accepted_flits_per_node_per_cycle" in measured.results


def test_a_percentile_is_the_least_latency_that_so_many_have():
    histogram = {10: 90, 20: 9, 30: 1}
    assert [percentile(histogram, part) for part in (0.5, 0.9, 0.901, 0.99, 0.999, 1.0)] == [
        10,
        10,
        20,
        20,
        30,
        30,
    ]


def test_a_percentile_beyond_the_packets_is_not_shown(tmp_path):
    rows = [{"point": 0, "seed": 1, "class": 0, "last_cycles": 10, "packets": 5000}]
    facts = run_facts("network-load", [{"parameters": {}, "results": {}}])
    html = own_text(make_report([write_run(tmp_path / "run", facts, {"latency": rows})]))
    (row,) = re.findall(r"<tr><th[^>]*>point 0</th>(.*?)</tr>", html)
    assert re.findall(r">([^<>]*)</td>", row) == ["5000", "10", "10", "10", "10", "-", "10"]


def test_percentiles_of_each_node_stand_in_a_table(tmp_path):
    folder = load_run(tmp_path / "run")
    row = {
        "point": 0,
        "seed": 11,
        "class": 0,
        "packets": 1000,
        "latency_p50_cycles": 41,
        "latency_p90_cycles": 42,
    }
    row |= {"latency_p99_cycles": 43, "latency_p999_cycles": 44, "latency_p9999_cycles": 45}
    rows = [row | {"of": "destination", "node": 3}, row | {"of": "class", "node": None}]
    polars.DataFrame(rows).write_parquet(folder / "tables" / "percentiles.parquet")
    html = own_text(make_report([folder]))
    (found,) = re.findall(r"<tr><th[^>]*>load 0.2</th>(<td[^>]*>destination.*?)</tr>", html)
    shown = re.findall(r">([^<>]*)</td>", found)
    assert shown == ["destination", "3", "0", "11", "1000", "41", "42", "43", "44", "-"]


def test_a_link_that_goes_round_a_torus_lies_on_no_other():
    ends = [(("router", n), ("router", (n + 1) % 4)) for n in range(4)]
    found = places(ends, "torus4x1")
    assert found[("router", 3)] == (3.0, 0.0)
    first, last = _drawn(found[("router", 3)], found[("router", 0)], 0.0, torus=True)
    assert first[1][0] > 3 and last[0][0] < 0
    assert len(_drawn(found[("router", 0)], found[("router", 1)], 0.0, torus=True)) == 1
    assert len(_drawn(found[("router", 3)], found[("router", 0)], 0.0, torus=False)) == 1


@pytest.mark.parametrize(
    "network", ["mesh2x2", "torus2x2", "hypercube(2)", "tree2x2", "file.json", "", "mesh9x9"]
)
def test_no_two_parts_of_a_map_are_in_one_place(network):
    ends = [(("router", n), ("node", n)) for n in range(4)]
    ends += [(("router", n), ("router", (n + 1) % 4)) for n in range(4)]
    found = places(ends, network)
    assert found.keys() == {end for pair in ends for end in pair}
    assert len({(round(x, 3), round(y, 3)) for x, y in found.values()}) == 8
    assert places(ends, network) == found


def test_a_sweep_of_a_thousand_points_is_bounded(tmp_path):
    folder = write_sweep(tmp_path / "sweep", sweep_rows(1000, flows=4))
    began = time.monotonic()
    html = make_report([folder])
    assert time.monotonic() - began < MOST_SECONDS
    assert len(html.encode()) < MOST_BYTES
    assert "of 4000 rows; table.csv has all" in html


def test_names_and_numbers_for_reading():
    assert label("bandwidth_mb_per_s") == "bandwidth (MB/s)"
    assert label("accepted_flits_per_node_per_cycle") == "accepted (flits a node and cycle)"
    assert label("set_load") == "load" and label("us") == "us"
    assert [number(one) for one in (None, True, 2.0, 0.12345, 1234.56, [1, 2.5], "x")] == [
        *("-", "yes", "2", "0.1235", "1234.6", "[1, 2.5]", "x")
    ]


def test_text_in_scripts_and_plots_is_no_markup():
    assert page.plain("<b>&") == "&lt;b&gt;&amp;"
    assert page.script_json({"a": ["</script>", float("nan"), float("inf"), "\u2028"]}) == (
        '{"a":["\\u003c/script\\u003e",null,null,"\\u2028"]}'
    )


def test_a_collection_takes_the_full_run_and_else_the_latest(tmp_path):
    times = {"a": 3000, "b": 1000, "c": 2000}
    for name, size in (("a", "quick"), ("b", "full"), ("c", "full")):
        folder = write_run(tmp_path / name, shares() | {"size": size})
        os.utime(folder / "results.json", (times[name], times[name]))
    found = read_folders([tmp_path])
    assert reproduction.latest(found.runs)["share-senders"].path.name == "c"
