"""Document budgets, token budgets, and their guarantees."""

from corpusveil.budget.budget import Budget

__all__ = ["Budget"]
