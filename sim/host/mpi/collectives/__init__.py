"""Collective operations, made of messages in a communicator's second context, as MPICH makes them."""
