"""Line and toggle coverage of the RTL, counted by Verilator and told in the lines of its Amaranth source.

`python -m support.coverage` (with `tests` on the path; `make coverage`) does it; docs/coverage.md says how to read it.
"""
