"""Whether a project can run on a Mac: read without running, asked here, forecast."""
