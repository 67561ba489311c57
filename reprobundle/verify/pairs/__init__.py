"""Set two runs beside each other: what was changed, and what came of it."""
