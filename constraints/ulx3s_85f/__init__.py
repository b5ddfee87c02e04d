"""ULX3S with an LFE5U-85F."""
