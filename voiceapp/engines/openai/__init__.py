"""Engines served elsewhere, by any program that speaks OpenAI's HTTP interface."""
