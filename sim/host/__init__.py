"""Host software: memory, programmed I/O and the GM library."""
