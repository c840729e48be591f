"""What a search found, as one page of HTML that needs nothing else.

`write` makes the file. `page` puts its sections together, of which `plot` draws the plans by
latency and memory, `table` ranks them, `timeline` shows what ranks do when, `memory` what lies
where in the arenas, `checks` what small runs on embedded ranks measured. `html` writes tags.
"""

from .checks import Check, check
from .page import page, write

__all__ = ["Check", "check", "page", "write"]
