"""Mercury."""
