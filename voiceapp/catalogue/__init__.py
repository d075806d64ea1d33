"""Which models there are: cards with their capabilities as values, and how they are looked up."""
