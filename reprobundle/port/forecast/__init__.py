"""Tell what a run on MPS would meet, from a run on the CPU."""
