"""What a conversation is: no I/O, no await, no Django; time is an argument."""
