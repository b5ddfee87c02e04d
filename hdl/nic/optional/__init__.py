"""Optional blocks of the card, each joined to it in one file (`hdl/nic/blocks.py`)."""
