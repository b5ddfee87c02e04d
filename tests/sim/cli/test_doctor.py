"""The doctor: the needs that are met, those that are missing, the exact commands, the exit status."""

from __future__ import annotations

import os
import shutil
import sys

import pytest
from lanikai.sim.cli import doctor, program
from lanikai.sim.errors import MissingTool, UserError


def run_doctor() -> int:
    with pytest.raises(SystemExit) as caught:
        program.main(["doctor"])
    return int(caught.value.code or 0)


def test_everything_has_a_purpose_and_an_exact_command():
    for need in doctor.NEEDS:
        assert need.install.startswith("sudo apt-get install ") and need.for_
    names = [need.name for need in doctor.NEEDS]
    assert {"C++ compiler", "perl", "make", "lz4.h", "GTKWave"} <= set(names)


def test_a_machine_without_anything(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert run_doctor() == 3
    text = capsys.readouterr().out
    for name in ("g++", "make", "perl", "liblz4-dev", "gtkwave"):
        assert f"sudo apt-get install {name}" in text
    assert "`lanikai run` needs what is missing" in text


def test_what_only_waves_need_does_not_fail_the_doctor(monkeypatch, tmp_path, capsys):
    for name in ("make", "perl"):
        (tmp_path / name).symlink_to(sys.executable)
    # A compiler that finds no header at all.
    compiler = tmp_path / "g++"
    compiler.write_text("#!/bin/sh\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("LANIKAI_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("LANIKAI_CXX", raising=False)
    assert run_doctor() == 0
    text = capsys.readouterr().out
    assert "sudo apt-get install liblz4-dev" in text and "sudo apt-get install gtkwave" in text
    assert "everything that `lanikai run` needs is there" in text
    assert f"build cache {tmp_path / 'cache'}: 0.0 MB" in text
    assert "verilator 5." in text
    with pytest.raises(
        MissingTool, match=r"^lz4.h is missing; install it with: sudo apt-get install liblz4-dev$"
    ):
        doctor.require(doctor.WAVES)
    doctor.require(doctor.RUN)


def test_a_compiler_that_the_user_named_and_is_not_there(monkeypatch, capsys):
    monkeypatch.setenv("LANIKAI_CXX", "nope")
    said = "LANIKAI_CXX=nope: no such compiler; name one that is there, or unset it"
    with pytest.raises(UserError, match=f"^{said}$"):
        doctor.require(doctor.RUN)
    assert run_doctor() == 3
    text = " ".join(capsys.readouterr().out.split())
    assert "LANIKAI_CXX=nope: no such" in text and "install g++" not in text


def test_headers_are_found_as_the_compiler_finds_them(monkeypatch, tmp_path):
    if not (shutil.which("g++") or shutil.which("clang++")):
        pytest.fail("the tests need a C++ compiler; `lanikai doctor` says how to get one")
    (tmp_path / "only_here.h").touch()
    find = doctor._header("only_here.h")
    monkeypatch.delenv("CPLUS_INCLUDE_PATH", raising=False)
    assert find() is None
    monkeypatch.setenv("CPLUS_INCLUDE_PATH", str(tmp_path))
    assert find() == str(tmp_path / "only_here.h")


def test_the_size_of_the_cache(tmp_path):
    assert doctor.folder_bytes(tmp_path / "none") == 0
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(bytes(1000))
    os.symlink(tmp_path / "gone", tmp_path / "broken")
    assert doctor.folder_bytes(tmp_path) == 1000
