"""The paths of the realtime sockets."""

from __future__ import annotations

from channels.auth import AuthMiddlewareStack
from channels.routing import URLRouter
from django.urls import re_path

from voiceapp.realtime.sockets import api_socket, inference_socket, page_socket, unknown_socket

websocket_router = URLRouter(
    [
        re_path(r"^(api-ws/|compatible-mode/)?v1/realtime/?$", api_socket),
        re_path(r"^api-ws/v1/inference/?$", inference_socket),
        re_path(r"^voice/socket/?$", AuthMiddlewareStack(page_socket)),
        re_path(r"", unknown_socket),
    ]
)
