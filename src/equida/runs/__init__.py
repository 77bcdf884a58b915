"""Runs that were made: reading them, grouping them, and the one table of results."""
