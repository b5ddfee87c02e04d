"""The network interface card: one file a block, and the NIC that joins them."""
