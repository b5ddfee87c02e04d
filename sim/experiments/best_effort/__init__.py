"""The experiment best-effort: its cases, runs and plot."""
