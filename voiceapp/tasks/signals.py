"""Signals of tasks: to workers that there is work, and to receivers that a task ended."""

from __future__ import annotations

from django.dispatch import Signal

QUEUE_NAME = "tasks"
"""Name of the queue, for `voiceapp.leases.wake`."""

task_finished = Signal()
"""A task has reached its final status: sent with the row, `task`, inside the transaction that writes it."""
