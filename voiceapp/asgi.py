"""The ASGI application: HTTP to Django, sockets to the realtime doors."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "voiceapp.settings")
django_application = get_asgi_application()  # before anything that imports models

from channels.routing import ProtocolTypeRouter  # noqa: E402

from voiceapp.realtime.routing import websocket_router  # noqa: E402

application = ProtocolTypeRouter({"http": django_application, "websocket": websocket_router})
