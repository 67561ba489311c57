"""Temporary folders that go, with what runs in them, also after a kill."""
