"""Launch a command under the recorder and turn what it left into a run record."""
