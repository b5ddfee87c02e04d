"""Each test of proofs is recorded: what it ran, and the processor time, with that of its tools."""

import os

import pytest
from support.formal.registry import begin_record, write_record


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    begin_record()
    before = os.times()
    result = yield
    after = os.times()
    write_record(item.path.name, item.originalname, sum(after[:4]) - sum(before[:4]))
    return result
