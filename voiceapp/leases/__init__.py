"""Rows that work is claimed from: who holds one, for how long, and how a lost worker's row comes back."""
