"""Blocks that know who owns what: completion queues, protection, translation, owners' pages."""
