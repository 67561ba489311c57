"""SSH signatures over a bundle or a replay, made and checked by OpenSSH."""
