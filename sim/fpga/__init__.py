"""Designs on FPGA boards: bitstreams, what fits where, and a board's measurements read over its serial line."""
