"""Run a command where the result was made, and write one bundle about it."""
