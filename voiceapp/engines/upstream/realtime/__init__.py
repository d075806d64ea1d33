"""Realtime models that another service serves, in this server's dialect or OpenAI's."""
