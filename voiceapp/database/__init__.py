"""The database as requests meet it: one limit on how long each of them waits for it, wherever it waits."""
