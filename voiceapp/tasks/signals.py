"""What the tasks tell whoever listens."""

from __future__ import annotations

from django.dispatch import Signal

task_finished = Signal()
"""A task has reached its final status: sent with the row, `task`, inside the transaction that writes it."""
