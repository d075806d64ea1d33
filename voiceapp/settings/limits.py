"""Limits of the server process, sessions, callers and guests."""

from __future__ import annotations

import ipaddress
import re

from django.core.exceptions import ImproperlyConfigured

from voiceapp.settings.environment import env, ice_urls, prices, regions
from voiceapp.settings.installation import DEBUG
from voiceapp.settings.models import VOICE_THREADS

# ── The server process ───────────────────────────────────────────────────────────────────────────────────────────────

PORT: int = env.int("PORT", default=8000)
"""The port to listen on."""
DRAIN_S: float = env.float("DRAIN_S", default=20.0)
"""Seconds that a stopping server waits for what is in progress. Conversations go on until the last 20 of them, in which
they are told to end."""
MAX_CONNECTIONS: int = env.int("MAX_CONNECTIONS", default=2000)
"""Connections at once, in all."""
MAX_CONNECTIONS_PER_ADDRESS: int = env.int("MAX_CONNECTIONS_PER_ADDRESS", default=100)
"""Connections at once from one address."""
HEADER_TIMEOUT_S: float = env.float("HEADER_TIMEOUT_S", default=10.0)
"""Seconds within which a request's headers must be here."""
BODY_TIMEOUT_S: float = env.float("BODY_TIMEOUT_S", default=30.0)
"""Seconds within which a request's body must be here."""
SEND_TIMEOUT_S: float = env.float("SEND_TIMEOUT_S", default=30.0)
"""Seconds after which a client that reads nothing of what it is sent is cut off. Works on Linux."""
LINGER_S: float = env.float("LINGER_S", default=2.0)
"""Seconds for which a body that was refused is still read, so that its sender can read the refusal."""
MAX_MESSAGE_BYTES: int = env.int("MAX_MESSAGE_BYTES", default=1024 * 1024)
"""The largest WebSocket message, in bytes. Audio takes a third more as base64."""
PING_S: float = env.float("PING_S", default=20.0)
"""Seconds of silence after which an open WebSocket is pinged; it is dropped without a pong for as long again."""
MAX_BODY_BYTES: int = env.int("MAX_BODY_BYTES", default=2 * 1024 * 1024)
"""The largest request body, in bytes."""
MAX_UPLOAD_BYTES: int = env.int("MAX_UPLOAD_BYTES", default=25 * 1024 * 1024)
"""The largest recording that may be uploaded, in bytes."""
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_BODY_BYTES  # Django's own limit, files left out
METRICS_TOKEN: str = env.str("METRICS_TOKEN", default="")
"""Bearer token with which Prometheus reads `/metrics` from another machine; keys of the scope `admin` do as well."""
ALLOW_EPHEMERAL_DB: bool = env.bool("ALLOW_EPHEMERAL_DB", default=False)
"""Start with SQLite even on a host that loses its disk at every restart, keys included."""

# ── Conversations ────────────────────────────────────────────────────────────────────────────────────────────────────

# On two cores, 95 of 100 replies came within 1 s while 16 callers talked who had begun within 7 s, and within 2 s while
# 32 did (`tests.bench`).
MAX_SESSIONS: int = env.int("MAX_SESSIONS", default=16 * VOICE_THREADS)
"""Conversations open at once in one process, whether their callers talk or not; 16 for each of VOICE_THREADS without
it, for so many may talk. Raise it where most are typed, or served by another service."""
TURN_BUDGET_MS: float = env.float("TURN_BUDGET_MS", default=1000)
"""Milliseconds within which 95 of 100 spoken replies should begin. A process whose turns wait too long for that admits
no more conversations; 0 admits them up to MAX_SESSIONS."""
MAX_SESSIONS_PER_ACCOUNT: int = env.int("MAX_SESSIONS_PER_ACCOUNT", default=32)
"""Conversations open at once for one account, in all processes."""
MAX_SPEECH_REQUESTS: int = env.int("MAX_SPEECH_REQUESTS", default=32)
"""Transcriptions and speech over HTTP at once in one process."""
SESSION_LIFETIME_S: int = env.int("SESSION_LIFETIME_S", default=120 * 60)
"""Seconds after which a conversation ends."""
RESUME_GRACE_S: float = env.float("RESUME_GRACE_S", default=20)
"""Seconds that a conversation waits for its caller after the connection was lost; it keeps its seat meanwhile. 0 ends
it with its connection. It waits only for callers who asked for that, as the page does."""
TEMPORARY_KEYS_END_SESSIONS: bool = env.bool("TEMPORARY_KEYS_END_SESSIONS", default=False)
"""A conversation that was opened with a temporary key ends within 5 seconds when that expires, or its key is
revoked."""
SAY_NOT_UNDERSTOOD: bool = env.bool("SAY_NOT_UNDERSTOOD", default=True)
"""The assistant says "I did not catch that." when it heard speech and understood no word; 0 stays silent."""
SPECULATIVE_REPLIES: str = env.str("SPECULATIVE_REPLIES", default="always")
"""A reply is begun while the caller may still go on, so that it is ready when they do not: free (where the model that
writes it runs on this server), always (a model of another server is then asked a little more often), or never."""
if SPECULATIVE_REPLIES not in ("free", "always", "never"):
    raise ImproperlyConfigured(f"SPECULATIVE_REPLIES is {SPECULATIVE_REPLIES!r}: write free, always or never.")
TRANSCRIPT_DAYS: int = env.int("TRANSCRIPT_DAYS", default=30)
"""Days for which the words of a conversation are kept; 0 keeps none."""
RECORDING_DAYS: int = env.int("RECORDING_DAYS", default=0)
"""Days for which the sound of conversations is kept, of both sides, with their events; callers are told. 0 records
nothing, and deletes what was recorded."""
RECORDING_MAX_S: float = env.float("RECORDING_MAX_S", default=3600)
"""Seconds of a conversation that are recorded at most; one takes 64 kB a second."""
RECORDINGS_MAX_BYTES: int = env.int("RECORDINGS_MAX_BYTES", default=10 * 1024**3)
"""Bytes of all recordings together; beyond it, new ones are not kept. Ten gibibytes without it."""

MAX_LISTENERS: int = env.int("MAX_LISTENERS", default=0)
"""Operators who may listen in to open conversations at a time, in each process; callers are told, aloud as well. 0 lets
none listen in."""

# ── WebRTC ───────────────────────────────────────────────────────────────────────────────────────────────────────────

RTC_ENABLED: bool = env.bool("RTC_ENABLED", default=True)
"""Off on a host that lets no UDP in and has no relay: pages then talk over the WebSocket at once. Offers are still
passed on."""
ICE_SERVERS: list[str] = ice_urls("ICE_SERVERS", "stun", env.list("ICE_SERVERS", default=[]))
"""STUN servers with commas between, such as stun:stun.example.org:3478. A server with a public address needs none."""
TURN_URLS: list[str] = ice_urls("TURN_URLS", "turn", env.list("TURN_URLS", default=[]))
"""The relay (coturn) for callers behind strict networks, such as turn:turn.example.org:3478?transport=tcp; several with
commas between."""
TURN_SECRET: str = env.str("TURN_SECRET", default="")
"""The relay's static-auth-secret. Required with TURN_URLS."""
if TURN_URLS and not TURN_SECRET:
    raise ImproperlyConfigured("TURN_URLS is set: set TURN_SECRET to the relay's static-auth-secret as well.")
RTC_FORCE_RELAY: bool = env.bool("RTC_FORCE_RELAY", default=False)
"""This server itself is reached through the relay only, on a host that lets no UDP in. Of several it tries one after
the other; it knows no turns: over UDP."""
if RTC_FORCE_RELAY and not TURN_URLS:
    raise ImproperlyConfigured("RTC_FORCE_RELAY needs a relay: set TURN_URLS and TURN_SECRET.")
if RTC_FORCE_RELAY and all(url.startswith("turns:") and url.endswith("=udp") for url in TURN_URLS):
    raise ImproperlyConfigured("RTC_FORCE_RELAY needs a relay that this server can use: it knows no turns: over UDP.")
RTC_PUBLIC_ADDRESS: str = env.str("RTC_PUBLIC_ADDRESS", default="")
"""The Internet address under which a router maps UDP onto this machine, port by port."""
try:
    ipaddress.ip_address(RTC_PUBLIC_ADDRESS or "::")
except ValueError:
    raise ImproperlyConfigured("RTC_PUBLIC_ADDRESS must be an Internet address, such as 203.0.113.9.") from None
RTC_PORT_RANGE: str = env.str("RTC_PORT_RANGE", default="")
"""UDP ports for media, from 1024 to 65535, such as 40000-40099; up to two for each call and network address. Any port
without it. Processes on one machine may share a range."""
if RTC_PORT_RANGE:
    _ports = re.fullmatch(r"([0-9]{4,5})-([0-9]{4,5})", RTC_PORT_RANGE)
    if not _ports or not 1024 <= int(_ports[1]) <= int(_ports[2]) <= 65535:
        raise ImproperlyConfigured("RTC_PORT_RANGE must be two ports from 1024 to 65535, such as 40000-40099.")
RTC_CONNECT_S: float = env.float("RTC_CONNECT_S", default=10)
"""Seconds that an answered offer waits for its caller to connect. It takes no place for conversations meanwhile."""
MAX_PENDING_OFFERS: int = env.int("MAX_PENDING_OFFERS", default=128)
"""Answered offers whose callers have not connected yet, in one process; the oldest makes way for a new one."""
MAX_PENDING_OFFERS_PER_ACCOUNT: int = env.int("MAX_PENDING_OFFERS_PER_ACCOUNT", default=64)
"""The same for one account."""
MAX_PENDING_OFFERS_PER_ADDRESS: int = env.int("MAX_PENDING_OFFERS_PER_ADDRESS", default=32)
"""The same for one account from one address."""
RTC_ALLOW_PRIVATE: bool = env.bool("RTC_ALLOW_PRIVATE", default=DEBUG)
"""Try private addresses that callers offer; for a server in a local network. On if DEBUG=1."""

# ── AOQ ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

AOQ_PORT: int = env.int("AOQ_PORT", default=PORT if RTC_ENABLED else 0)
"""UDP port of the relay in the serving process; 0 for no relay there. Without it, the number of the TCP port, or 0 with
RTC_ENABLED=0. The relay needs requirements-aoq.txt, which `make run` installs where it can."""
AOQ_ENDPOINT: str = env.str("AOQ_ENDPOINT", default="")
"""Host name or address under which callers reach the relay. The address that the server listens on without it, on your
own machine and where that is a public one."""
AOQ_REGION: str = env.str("AOQ_REGION", default="")
"""Location of this process's relay, in a word of yours, such as eu."""
AOQ_REGIONS: dict[str, str] = regions(env.dict("AOQ_REGIONS", default={}))
"""Networks of callers and their regions, with commas between, such as 198.51.100.0/24=eu,203.0.113.0/24=us."""
AOQ_TLS_CERT: str = env.str("AOQ_TLS_CERT", default="")
"""PEM file of a certificate that a public authority has signed. Without it a short-lived certificate is minted, which
browsers know by its fingerprint."""
AOQ_TLS_KEY: str = env.str("AOQ_TLS_KEY", default="")
"""PEM file of that certificate's key."""
if bool(AOQ_TLS_CERT) != bool(AOQ_TLS_KEY):
    raise ImproperlyConfigured("AOQ_TLS_CERT and AOQ_TLS_KEY belong together: set both or none.")

# ── Who pays ─────────────────────────────────────────────────────────────────────────────────────────────────────────

RATE_LIMITS: dict[str, str] = {
    "default": "200/1",
    "tokens": "20/1",
    "tasks.query": "20/1",
    "tasks.list": "20/1",
    "tasks.cancel": "20/1",
    "tasks.create": "20/1",
    "realtime": "60/60",
    "guests": "60/60",
    **env.dict("RATE_LIMITS", default={}),
}
"""Calls per account and operation in so many seconds, such as chat=10/1,embedding=600/60,rerank=off; what is not named
keeps its default: 20/1 for the task operations and tokens, 60/60 for calls that are passed on (realtime) and for offers
and grants of guests at one address (guests), 200/1 for all others."""
QUOTA_ENFORCED: str = env.str("QUOTA_ENFORCED", default="elsewhere")
"""Calls that free quotas of tokens limit: elsewhere, those of models that another server runs, which sends a bill;
always, all; or never."""
FREE_QUOTAS: dict[str, int] = {"rerank": 1_000_000, "embedding": 1_000_000}
"""Tokens by model family that an account has for nothing (interface specification, Limits)."""
FREE_QUOTA_DAYS = 90
LEDGER_PRICES: dict[str, dict[str, int]] = {
    "rerank": {"input_tokens": 100},
    "embedding": {"input_tokens": 70},
    **prices(env.str("LEDGER_PRICES", default="")),
}
"""Prices in nano-dollars (a dollar is 1000000000) for one of a unit, as JSON by model name or family, such as {"tts":
{"characters": 15000}, "realtime": {"audio_seconds": 100000}}. Families and their units: chat (input_tokens,
output_tokens), embedding and rerank (input_tokens), asr (audio_seconds), tts (characters), image (image_count), video
(video_count, video_seconds), realtime (input_tokens, output_tokens, dropped_tokens, audio_seconds, conversations).
What is not named costs nothing, but for rerank and embedding, whose tokens cost 100 and 70. A key's monthly budget is
spent at these prices."""

# ── The page ─────────────────────────────────────────────────────────────────────────────────────────────────────────

PUBLIC_PAGE: str = env.str("PUBLIC_PAGE", default="guest" if DEBUG else "login")
"""Access to the voice page: off, login (signed-in people) or guest (all, within the limits of guests). guest if
DEBUG=1."""
GUEST_SESSIONS_PER_ADDRESS: int = env.int("GUEST_SESSIONS_PER_ADDRESS", default=20 if DEBUG else 2)
"""Conversations of guests open at once from one address, in all processes. 20 if DEBUG=1."""
GUEST_SESSIONS_PER_HOUR: int = env.int("GUEST_SESSIONS_PER_HOUR", default=1000 if DEBUG else 10)
"""Conversations that guests may begin within an hour from one address. 1000 if DEBUG=1."""
GUEST_SESSION_S: int = env.int("GUEST_SESSION_S", default=7200 if DEBUG else 180)
"""Seconds after which a guest's conversation ends. 7200 if DEBUG=1."""
GUEST_SESSIONS_TOTAL: int = env.int("GUEST_SESSIONS_TOTAL", default=max(1, MAX_SESSIONS * 3 // 4))
"""Conversations of all guests open at once, in all processes; three quarters of MAX_SESSIONS without it."""
