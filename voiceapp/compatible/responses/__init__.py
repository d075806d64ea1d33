"""OpenAI's Responses API: the chat path in the words of its newer shape. Nothing is stored between two calls."""
