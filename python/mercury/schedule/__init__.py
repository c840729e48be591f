"""Schedules: where and when a program computes, and where its data lives."""

from .recipe import format_recipe, parse_recipe
from .schedule import Schedule

__all__ = ["Schedule", "format_recipe", "parse_recipe"]
