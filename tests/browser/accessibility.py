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


def violations(page: Page) -> list[str]:
    """What axe-core objects to, one line per rule and element."""
    page.evaluate(axe_source())
    page.evaluate(
        """Promise.all(document.getAnimations()
            .filter((animation) => animation.effect.getTiming().iterations !== Infinity)
            .map((animation) => animation.finished))"""
    )
    found: list[dict[str, Any]] = page.evaluate(
        """async (rules) => {
            const asked = { runOnly: { type: 'tag', values: rules }, resultTypes: ['violations'] };
            return (await axe.run(document, asked)).violations;
        }""",
        RULES,
    )
    return [
        f"{violation['id']}: {node['target']} {node['failureSummary']}"
        for violation in found
        for node in violation["nodes"]
    ]
