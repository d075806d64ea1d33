"""Django's backend for PostgreSQL, whose connections and replies are waited for as long as the request at hand may."""
