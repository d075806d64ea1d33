"""What all HTTP operations share: middleware, error responses, refusals before Django, schemas, OpenAPI."""
