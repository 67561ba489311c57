"""Why a replay probably differs, and the one change to try next."""
