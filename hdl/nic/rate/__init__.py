"""Rate control: a flow's IDT and NDT, in registers (`control`) or in a tree in block RAM (`tree`)."""
