"""Blocks that know the owners of things: completion queues, protection, translation, owners' pages."""
