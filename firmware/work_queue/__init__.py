"""A small control program for work queues on a card with owners: post, doorbell, checked DMA, completion.

It has the base of a user-level network (nagar-thesis-2001 4.1.2, 4.3.2), and no more: messages of one packet, no
connection set-up, no retransmission. Descriptors come to the card in one of three ways (`WorkQueueConfig.descriptors`).

- `layout`: layouts that host and firmware share.
- `config`: sizes.
- `costs`: cycles of the steps.
- `program`: the program, and the order in which it does things.
- `intake`, `sender`, `receiver`, `completion`: doorbells, messages out, messages in, their ends.
- `transfers`: the host DMA engine, for descriptors and data.
- `events`: waits for the card.
- `context`: the program as these see it.
"""
