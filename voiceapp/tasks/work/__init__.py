"""Working on tasks: whose turn it is, the parts, and what they may ask of the queue."""
