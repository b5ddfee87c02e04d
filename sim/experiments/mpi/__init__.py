"""The experiments with MPI messages: a flow against its IDT, shares of senders, a replayed program."""
