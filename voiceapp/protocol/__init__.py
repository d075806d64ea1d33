"""The session core: no I/O, no await, no Django; time is an argument."""
