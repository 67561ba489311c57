"""Run a bundle's command on this machine and attach the record of it."""
