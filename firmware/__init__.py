"""Programs of the NIC's processor, as coroutines with a cycle cost for each step."""
