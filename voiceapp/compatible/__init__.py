"""The OpenAI-compatible style of operations that other houses answer: the `openai` libraries work with a base URL.

A second style of the same doors, not a door beside them: chat is `generation`'s, in other words.
"""
