"""Times as operators read them: to the second, so that events of one minute can be told apart."""
