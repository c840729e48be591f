"""The comparisons of the Mercury paper (SOSP 2025), predicted by simulation; see `compare`."""

from .cases import CASES, Case
from .compare import Comparison, Outcome, compare
from .summary import PUBLISHED, Line, summary

__all__ = ["CASES", "PUBLISHED", "Case", "Comparison", "Line", "Outcome", "compare", "summary"]
