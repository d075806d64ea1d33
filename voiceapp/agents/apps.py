"""Agents: who answers, as an operator composed it."""

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    name = "voiceapp.agents"
    verbose_name = "Agents"

    def ready(self) -> None:
        """Let keys be held to agents: their names are names of models."""
        from voiceapp.agents.models import Agent
        from voiceapp.catalogue import lookup

        lookup.is_agent = lambda name: Agent.objects.filter(name=name).exists()
