"""Whether a bundle fits where it is meant to go, and what to leave out if not."""
