"""Prove on copies of a bundle that the verifier says no when it has to."""
