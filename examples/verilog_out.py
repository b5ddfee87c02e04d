"""Verilog out: a small router with your choice of lanes and arbiter, as a block for your own design.

Beside the modules there are a list of files, the clock's constraints, and where a block has registers a C header.
"""

import lanikai

settings = {"ports": 3, "vls": 2, "vl_arbiter": "fcfs"}
files = lanikai.verilog("router", "router-verilog", clock_mhz=80, **settings)
for file in files:
    lines = file.read_text().splitlines()
    print(f"{file}: {len(lines)} lines")
