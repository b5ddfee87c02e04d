"""Parts of routers with adaptive routing: loads of the outputs, and the choice among a packet's options."""
