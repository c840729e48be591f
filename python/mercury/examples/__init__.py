"""Short programs that show what Mercury does; run them with ``python -m``."""
