"""The bundle format: container, documents, digests, names and limits (spec.md)."""
