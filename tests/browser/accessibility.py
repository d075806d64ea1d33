"""What axe-core, the accessibility rules, objects to on a page."""

from __future__ import annotations

import functools
from typing import Any

from playwright.sync_api import Page

from .npm_packages import packages

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@functools.cache
def axe_source() -> str:
    return (packages() / "axe-core" / "axe.min.js").read_text()


def violations(page: Page, *, only: str = "") -> list[str]:
    """What axe-core objects to, one line per rule and element, by all rules or `only` one."""
    page.evaluate(axe_source())
    page.evaluate(
        """Promise.all(document.getAnimations()
            .filter((animation) => animation.effect.getTiming().iterations !== Infinity)
            .map((animation) => animation.finished))"""
    )
    found: list[dict[str, Any]] = page.evaluate(
        """async (runOnly) => (await axe.run(document, { runOnly, resultTypes: ['violations'] })).violations""",
        {"type": "rule", "values": [only]} if only else {"type": "tag", "values": RULES},
    )
    return [
        f"{violation['id']}: {node['target']} {node['failureSummary']}"
        for violation in found
        for node in violation["nodes"]
    ]
