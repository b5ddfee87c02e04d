"""Experiments whose work is given: traces, sizes of flows, collective operations, schedules."""
