"""Document budgets, token budgets, and what they promise."""

from corpusveil.budget.budget import Budget

__all__ = ["Budget"]
