"""hibari: English voices that make sound from text by rules, a model of 8 MB and some arithmetic."""
