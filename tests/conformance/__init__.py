"""The conformance suite: vectors, what makes them, and what runs them."""
