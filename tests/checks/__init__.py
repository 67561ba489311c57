"""The project's own checks: each must be able to fail."""
