"""OrangeCrab r0.2 with an LFE5U-25F."""
