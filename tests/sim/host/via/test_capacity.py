"""The capacity file: a line that no measured time is above."""

from __future__ import annotations

import json
import tomllib

import pytest
from lanikai.sim.host.via.admission import MessageTime
from lanikai.sim.host.via.capacity import line, main


def test_a_line_is_a_line():
    assert line({0: 10.0, 1000: 20.0, 4000: 50.0}) == MessageTime(fixed_ns=10_000, byte_ps=10_000)


def test_no_measured_time_is_above_it():
    times = {4: 40.0, 1024: 41.0, 4096: 43.0, 16384: 130.0}
    made = line(times)
    assert all(made.message_ns(size) >= 1000 * time - 1 for size, time in times.items())
    # It touches one of them.
    assert min(made.message_ns(size) - 1000 * time for size, time in times.items()) < 2
    with pytest.raises(ValueError, match=r"^1 sizes of messages: at least 2$"):
        line({4: 1.0})


def test_the_file_of_a_run(tmp_path):
    points = [
        {
            "parameters": {"design": design, "setup": way, "message_bytes": size},
            "results": {"message_us": fixed + size / 100},
        }
        for design, fixed in (("svia", 10.0), ("pvia", 30.0))
        for way in ("send", "receive")
        for size in (0, 1000)
    ]
    points.append({"parameters": {"design": "qosvia", "setup": "control", "message_bytes": 4}, "results": {}})
    (tmp_path / "results.json").write_text(json.dumps({"points": points}))
    main([str(tmp_path / "results.json"), "--out", str(tmp_path / "capacity.toml")])
    found = tomllib.loads((tmp_path / "capacity.toml").read_text())
    assert found == {
        "svia": {way: {"fixed_ns": 10_000, "byte_ps": 10_000} for way in ("send", "receive")},
        "pvia": {way: {"fixed_ns": 30_000, "byte_ps": 10_000} for way in ("send", "receive")},
    }
