"""Queues of descriptors before the engines, in order of arrival or of time stamps, or with a queue for each lane."""
