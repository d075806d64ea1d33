"""Engines that another program serves with OpenAI's HTTP interface."""
