"""The ASGI application: HTTP to Django, sockets to the realtime doors."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "voiceapp.settings")
django.setup(set_prefix=False)  # before anything that imports models

from channels.routing import ProtocolTypeRouter  # noqa: E402

from voiceapp.http.handler import Handler  # noqa: E402
from voiceapp.realtime.routing import websocket_router  # noqa: E402

application = ProtocolTypeRouter({"http": Handler(), "websocket": websocket_router})
