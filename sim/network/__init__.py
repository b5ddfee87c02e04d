"""A network under traffic made and measured in RTL: configuration, model, and the object for coroutines."""
