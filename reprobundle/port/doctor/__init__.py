"""Ask this machine whether a run on MPS can start here and survive."""
