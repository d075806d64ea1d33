"""The Django app of the tasks."""

from __future__ import annotations

from django.apps import AppConfig


class TasksConfig(AppConfig):
    name = "voiceapp.tasks"
    verbose_name = "Tasks"
    default_auto_field = "django.db.models.BigAutoField"
