"""Numbered checks of a bundle and its replays, and the one verdict they lead to."""
