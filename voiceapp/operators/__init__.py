"""The admin site of operators, and its pages that belong to no table."""
