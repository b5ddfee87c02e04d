"""The tests in whose runs coverage is counted: those that drive the RTL in Verilator, few simulators for much of it."""

from __future__ import annotations

__all__ = ["SUITE"]

SUITE = (
    "tests/sim/systems/test_cluster.py::test_bytes_from_memory_to_memory",
    "tests/system/test_router_traffic.py::test_mesh_delivers_everything_and_drains[table_service_level]",
)
