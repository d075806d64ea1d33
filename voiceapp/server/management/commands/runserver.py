"""`manage.py runserver`: the development server with reloading, on the same protocols and front as `serve`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from daphne.management.commands.runserver import Command as DaphneCommand
from django.conf import settings
from twisted.internet import reactor
from twisted.internet.endpoints import serverFromString

from voiceapp.drain import drain_event
from voiceapp.health import process_readiness
from voiceapp.http.refusals import Application
from voiceapp.server.daphne_adapter import Server
from voiceapp.server.front import Front
from voiceapp.server.limits import ServerLimits
from voiceapp.server.management.commands.serve import refuse_development


class DevelopmentServer:
    """The server that daphne's command makes and runs; stops with the process, without a drain."""

    def __init__(self, application: Application, endpoints: list[str], signal_handlers: bool, **options: Any) -> None:
        self._server = Server(application, ServerLimits.from_settings())
        self._endpoints = endpoints
        self._signal_handlers = signal_handlers

    def run(self) -> None:
        self._server.begin()
        for description in self._endpoints:
            listening = serverFromString(reactor, description).listen(self._server.http_factory)
            listening.addCallbacks(self._server.listen_success, self._server.listen_error)
        reactor.run(installSignalHandlers=self._signal_handlers)


class Command(DaphneCommand):
    server_cls: Callable[..., DevelopmentServer] = DevelopmentServer
    default_port = str(settings.PORT)

    def get_application(self, options: dict[str, Any]) -> Application:
        refuse_development(self.addr)
        application: Application = super().get_application(options)
        return Front(application, ServerLimits.from_settings(), drain_event(), process_readiness())
