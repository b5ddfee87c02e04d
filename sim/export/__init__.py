"""Export: a block as readable Verilog with its constraints and registers, for designs outside of this tree."""
