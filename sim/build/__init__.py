"""A design to a simulator executable: Verilog, compiler, cache, composition of compiled blocks."""
