"""Facts from tables: countries, elements, planets and words."""
