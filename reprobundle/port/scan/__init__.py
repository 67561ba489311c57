"""Read a project for what needs an NVIDIA GPU; nothing of it is imported or run."""
