"""Secrets and personal data in what is about to be handed on."""
