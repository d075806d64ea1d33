"""Models and their running: files, sessions of the runtime, lanes, providers, stand-ins."""
