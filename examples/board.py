"""A board: the area of three VL arbiters, and one of them placed for an FPGA board, with its clock."""

import polars

import lanikai

areas = [
    lanikai.synthesize(f"vl-arbiter/{name}", seeds=0, vls=4)
    for name in ("round-robin", "fcfs", "fixed-priority")
]
print(polars.concat(areas).select("block", "lut4", "ff"))
placed = lanikai.synthesize("vl-arbiter/round-robin", seeds=1, board="ulx3s-85f", vls=4)
print(placed.select("block", "board", "fmax_mhz", "critical_path_logic_ns"))
