"""Workloads in files of the user's: packet traces, sizes of flows, schedules. Errors name file and line."""
