"""No pages: the server is tested without the product."""

from __future__ import annotations

urlpatterns: list[object] = []
