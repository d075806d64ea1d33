"""What the tasks tell whoever listens."""

from __future__ import annotations

from django.dispatch import Signal

task_finished = Signal()
"""A task has reached its final status. Sent inside the transaction that writes it, with `task`, the row as it is now."""
