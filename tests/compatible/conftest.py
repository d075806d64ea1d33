"""The same catalogue and questions as the native style's tests."""

from tests.generation.conftest import _models, ask, engine, plain

__all__ = ["_models", "ask", "engine", "plain"]
