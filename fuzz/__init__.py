"""Coverage-guided fuzzing of everything that reads what a stranger made."""
