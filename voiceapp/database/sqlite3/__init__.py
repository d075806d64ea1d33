"""Django's backend for SQLite, with a lock that is waited for as long as the request at hand may wait."""
