"""Synthesis for FPGA: blocks, tools, reports of area and clock frequency."""
