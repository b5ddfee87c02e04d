"""The adapter network: routers, host channel adapters, and hosts that post and receive through them."""
