"""Find secrets and personal data before they are sealed into a bundle."""
