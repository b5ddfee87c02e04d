"""A small control program for work queues on a card with owners: post, doorbell, checked DMA, completion.

What a user-level network is built on (nagar-thesis-2001 4.1.2, 4.3.2), and no more: messages of one packet, no
connection set-up, no retransmission. Descriptors come to the card in one of three ways (`WorkQueueConfig.descriptors`).

- `layout`: what host and firmware share; `config`: sizes; `costs`: cycles of the steps; `program`: the program.
"""
