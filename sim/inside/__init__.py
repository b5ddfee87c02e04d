"""Runs inside the simulator's process: entry, session, clock, watchdog, the main loop's interface."""
