"""Small talk, games, comfort, and what is asked of a person rather than a program."""
