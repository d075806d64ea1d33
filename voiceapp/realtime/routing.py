"""The paths of the realtime sockets."""

from __future__ import annotations

from channels.auth import AuthMiddlewareStack
from channels.routing import URLRouter
from django.urls import re_path

from voiceapp.realtime.transports.unknown import unknown_socket
from voiceapp.realtime.transports.websocket import ApiSocket, PageSocket

websocket_router = URLRouter(
    [
        re_path(r"^api-ws/v1/realtime/?$", ApiSocket.as_asgi()),
        re_path(r"^voice/socket/?$", AuthMiddlewareStack(PageSocket.as_asgi())),
        re_path(r"", unknown_socket),
    ]
)
