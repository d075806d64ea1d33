"""The page "Connect your program", and the key that a person makes on it."""

from __future__ import annotations

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from voiceapp.accounts.own_keys import make_own_key
from voiceapp.errors import AccessDenied

from .colouring import coloured
from .connect import KEY, LIBRARIES


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
async def connect(request: HttpRequest) -> HttpResponse:
    """`/docs/connect`: the programs with the address of this server; POST makes a key and shows it once."""
    user = await request.auser()
    key, expires_at, refusal = "", None, ""
    if request.method == "POST":
        if not user.is_authenticated:
            return redirect_to_login(request.path)
        try:
            row, key = await make_own_key(user)
            expires_at = row.expires_at
        except AccessDenied as denied:
            refusal = denied.message
    origin = request.build_absolute_uri("/").rstrip("/")
    libraries = [
        (library, [(each, coloured(each.program(origin, key), each.language)) for each in library.examples])
        for library in LIBRARIES
    ]
    context = {
        "place": "connect",
        "libraries": libraries,
        "mark": KEY,
        "key": key,
        "expires_at": expires_at,
        "refusal": refusal,
        "is_signed_in": user.is_authenticated,
    }
    return render(request, "docs/connect.html", context)
