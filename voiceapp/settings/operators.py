"""The admin theme: name, colours and the navigation beside its pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.templatetags.static import static
from django.urls import reverse, reverse_lazy


def _asset(name: str) -> Callable[[Any], str]:
    return lambda request: static(name)


def _page(title: str, icon: str, name: str, permission: str = "", *parameters: str) -> dict[str, Any]:
    """A link of the navigation, for those who have the permission."""
    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"admin:{name}", args=parameters),
        "permission": lambda request: not permission or request.user.has_perm(permission),
    }


def _rows(title: str, icon: str, model: str) -> dict[str, Any]:
    app, _, name = model.partition(".")
    return _page(title, icon, f"{app}_{name}_changelist", f"{app}.view_{name}")


def _own_pages(request: Any) -> list[dict[str, Any]]:
    """Links of the menu of those who sign in with a password."""
    names = {"Change password": "admin:password_change", "Two-factor authentication": "two-factor"}
    has_password = request.user.is_authenticated and request.user.has_usable_password()
    return [{"title": title, "link": reverse(name)} for title, name in names.items() if has_password]


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Voiceapp",
    "SITE_HEADER": "Voiceapp",
    "SITE_ICON": _asset("voice/icon.svg"),
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": _asset("voice/icon.svg")}],
    "STYLES": [_asset("operators/theme.css"), _asset("operators/pages.css")],
    "SCRIPTS": [_asset("operators/theme.js")],
    "ACCOUNT": {"navigation": _own_pages},
    "COMMAND": {"search_models": True},
    "SIDEBAR": {
        "command_search": True,
        "navigation": [
            {"items": [_page("Now", "monitoring", "index")]},
            {
                "title": "What happens",
                "items": [
                    _rows("Conversations", "forum", "realtime.realtimesession"),
                    _rows("Tasks", "checklist", "tasks.task"),
                    _page("Usage", "bar_chart", "usage", "accounts.view_usagerecord"),
                    _rows("Ledger", "receipt_long", "accounts.usagerecord"),
                    _rows("Deliveries", "outgoing_mail", "webhooks.delivery"),
                ],
            },
            {
                "title": "Who answers",
                "items": [
                    _page("Assistant", "smart_toy", "agents_try", "agents.change_agent", "voice"),
                    _rows("Agents", "support_agent", "agents.agent"),
                    {"title": "Playground", "icon": "play_circle", "link": reverse_lazy("playground")},
                ],
            },
            {
                "title": "Who may what",
                "items": [
                    _rows("API keys", "key", "accounts.apikey"),
                    _rows("Temporary keys", "timer", "accounts.mintedkey"),
                    _rows("Accounts", "domain", "accounts.account"),
                    _rows("Workspaces", "workspaces", "accounts.workspace"),
                    _rows("Sites with a talk button", "captive_portal", "accounts.guestsite"),
                    _rows("Free quotas", "redeem", "accounts.quota"),
                    _rows("Files of tasks", "folder", "tasks.storageuse"),
                    _rows("Webhook endpoints", "webhook", "webhooks.webhookendpoint"),
                    _rows("Users", "person", "auth.user"),
                    _rows("Groups", "group", "auth.group"),
                    _rows("Audit", "history", "admin.logentry"),
                ],
            },
        ],
    },
}
