"""Shared parts of all HTTP operations: middleware, error responses, refusals before Django, schemas, OpenAPI."""
