"""The control program of virtual networks: endpoints that are paged, and messages that come once (chun-1998).

- `config`: sizes and choices.
- `layout`: places in the SRAM and in an endpoint's page.
- `words`: entries, doorbell words, records, commands and notices.
- `wire`: words of packets.
- `messages`: messages on their way, and what the transport says of them.
- `transport`: the protocol between cards, without I/O; `send_half`, `channels` and `waiting` are its parts.
"""
