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
DRAIN_S: float = env.float("DRAIN_S", default=20.0)
"""Seconds that a stopping server waits for requests in progress."""
MAX_CONNECTIONS: int = env.int("MAX_CONNECTIONS", default=2000)
MAX_CONNECTIONS_PER_ADDRESS: int = env.int("MAX_CONNECTIONS_PER_ADDRESS", default=100)
HEADER_TIMEOUT_S: float = env.float("HEADER_TIMEOUT_S", default=10.0)
BODY_TIMEOUT_S: float = env.float("BODY_TIMEOUT_S", default=30.0)
SEND_TIMEOUT_S: float = env.float("SEND_TIMEOUT_S", default=30.0)
"""A connection whose client takes nothing of what is sent for this long is cut. Linux counts it."""
LINGER_S: float = env.float("LINGER_S", default=2.0)
"""Seconds for which a refused body is still read and thrown away: closing at once would reset the connection, and the
refusal with it."""
MAX_MESSAGE_BYTES: int = env.int("MAX_MESSAGE_BYTES", default=1024 * 1024)
"""The largest WebSocket message; a larger one ends the connection with 1009."""
PING_S: float = env.float("PING_S", default=20.0)
"""Silence after which an open WebSocket is pinged; without a pong for as long again it is dropped."""
MAX_BODY_BYTES: int = env.int("MAX_BODY_BYTES", default=2 * 1024 * 1024)
MAX_UPLOAD_BYTES: int = env.int("MAX_UPLOAD_BYTES", default=25 * 1024 * 1024)
"""The same where recordings are uploaded."""
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_BODY_BYTES  # Django's own limit, files left out
ALLOW_EPHEMERAL_DB: bool = env.bool("ALLOW_EPHEMERAL_DB", default=False)

# ── Conversations ────────────────────────────────────────────────────────────────────────────────────────────────────

MAX_SESSIONS: int = env.int("MAX_SESSIONS", default=16 * VOICE_THREADS)
"""Conversations open at once in this process; beyond it a new one is refused with 429. On two cores, 95 of 100 replies
came within 0.8 s while 32 callers talked who had begun within 7 s, and within 2 s while 40 did (`tests.bench`)."""
MAX_SESSIONS_PER_ACCOUNT: int = env.int("MAX_SESSIONS_PER_ACCOUNT", default=32)
MAX_SPEECH_REQUESTS: int = env.int("MAX_SPEECH_REQUESTS", default=32)
"""Transcriptions and speech over HTTP at once in this process; beyond it a new one is refused with 429."""
SESSION_LIFETIME_S: int = env.int("SESSION_LIFETIME_S", default=120 * 60)
RESUME_GRACE_S: float = env.float("RESUME_GRACE_S", default=20)
"""Seconds that a conversation waits for its caller after the connection was lost; it
keeps its seat meanwhile. 0 ends it with its connection. It waits only for callers who asked for that, as the page does.
"""
REVOKE_CLOSES_SESSIONS: bool = env.bool("REVOKE_CLOSES_SESSIONS", default=True)
TEMPORARY_KEYS_END_SESSIONS: bool = env.bool("TEMPORARY_KEYS_END_SESSIONS", default=False)
"""True if a conversation opened with a temporary key ends when that expires, or its key is revoked. The
interface specification lets authentication count at set-up only."""
SAY_NOT_UNDERSTOOD: bool = env.bool("SAY_NOT_UNDERSTOOD", default=True)
"""True if the assistant says so when it heard speech and understood no word."""
SPECULATIVE_REPLIES: str = env.str("SPECULATIVE_REPLIES", default="always")
"""Replies begun while the caller may still go on, so that they are ready at the end of the turn: `free` where the
model that writes it runs on this server, `always` also where another server does, which is then asked a little more
often, or `never`. Not in turns that have a budget."""
if SPECULATIVE_REPLIES not in ("free", "always", "never"):
    raise ImproperlyConfigured(f"SPECULATIVE_REPLIES is {SPECULATIVE_REPLIES!r}: write free, always or never.")
TRANSCRIPT_DAYS: int = env.int("TRANSCRIPT_DAYS", default=30)
"""Days for which the words of a conversation are kept; 0 keeps none."""

# ── WebRTC ───────────────────────────────────────────────────────────────────────────────────────────────────────────

RTC_ENABLED: bool = env.bool("RTC_ENABLED", default=True)
"""Off where neither UDP nor a relay reaches this server: pages then do not try. Offers are still passed on."""
ICE_SERVERS: list[str] = ice_urls("ICE_SERVERS", "stun", env.list("ICE_SERVERS", default=[]))
"""STUN servers, such as stun:stun.example.org:3478; a server with a public address needs none."""
TURN_URLS: list[str] = ice_urls("TURN_URLS", "turn", env.list("TURN_URLS", default=[]))
"""The relay for callers behind strict networks, such as turn:turn.example.org:3478?transport=tcp."""
TURN_SECRET: str = env.str("TURN_SECRET", default="")
"""The relay's `static-auth-secret`: credentials for a limited time are made with it."""
if TURN_URLS and not TURN_SECRET:
    raise ImproperlyConfigured("TURN_URLS is set: set TURN_SECRET to the relay's static-auth-secret as well.")
RTC_FORCE_RELAY: bool = env.bool("RTC_FORCE_RELAY", default=False)
"""This server itself is reached through the relay only: for hosts that let no UDP in."""
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
"""UDP ports for media, such as 40000-40099; empty lets the system choose."""
if RTC_PORT_RANGE:
    _ports = re.fullmatch(r"([0-9]{4,5})-([0-9]{4,5})", RTC_PORT_RANGE)
    if not _ports or not 1024 <= int(_ports[1]) <= int(_ports[2]) <= 65535:
        raise ImproperlyConfigured("RTC_PORT_RANGE must be two ports from 1024 to 65535, such as 40000-40099.")
RTC_CONNECT_S: float = env.float("RTC_CONNECT_S", default=10)
"""Seconds that an answered offer waits for its caller to connect. It holds no seat meanwhile."""
MAX_PENDING_OFFERS: int = env.int("MAX_PENDING_OFFERS", default=128)
"""Answered offers whose callers have not connected yet, in this process; the oldest makes way for a new one."""
MAX_PENDING_OFFERS_PER_ACCOUNT: int = env.int("MAX_PENDING_OFFERS_PER_ACCOUNT", default=64)
MAX_PENDING_OFFERS_PER_ADDRESS: int = env.int("MAX_PENDING_OFFERS_PER_ADDRESS", default=32)
"""The same for one account from one address."""
RTC_ALLOW_PRIVATE: bool = env.bool("RTC_ALLOW_PRIVATE", default=DEBUG)
"""Try candidates with addresses that are not public. Off, a caller cannot have this server probe its own network."""

# ── AOQ ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

AOQ_PORT: int = env.int("AOQ_PORT", default=PORT)
"""UDP port of the relay in the serving process, by default that of pages; 0 for no relay there."""
AOQ_ENDPOINT: str = env.str("AOQ_ENDPOINT", default="")
"""Host name or address under which callers reach the relay; empty for the address that the server listens on."""
AOQ_REGION: str = env.str("AOQ_REGION", default="")
"""Location of this process's relay, in a word of the operator's."""
AOQ_REGIONS: dict[str, str] = regions(env.dict("AOQ_REGIONS", default={}))
"""Region by network of callers, such as 198.51.100.0/24=eu: relays of that region come first in their grants."""
AOQ_TLS_CERT: str = env.str("AOQ_TLS_CERT", default="")
"""PEM file of a certificate that a public authority has signed; empty mints one, which browsers know by fingerprint."""
AOQ_TLS_KEY: str = env.str("AOQ_TLS_KEY", default="")
if bool(AOQ_TLS_CERT) != bool(AOQ_TLS_KEY):
    raise ImproperlyConfigured("AOQ_TLS_CERT and AOQ_TLS_KEY belong together: set both or none.")
AOQ_TRANSPORT_HEADER: str = env.str("AOQ_TRANSPORT_HEADER", default="x-service-rtc-transport")
"""Header whose value `moq` asks for a grant; x-dashscope-rtc-transport, which client programs send, counts as well."""

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
"""Calls an account may make of an operation (`chat`, `embedding`, `rerank`, …) in so many seconds; `off` for no limit.

`realtime` counts calls that are passed on to another service, and `guests` the offers and grants of guests at one
address. The task operations' are the interface specification's. It names none for the others: their default only stops
a program that runs away.
"""
QUOTA_ENFORCED: str = env.str("QUOTA_ENFORCED", default="elsewhere")
"""Calls that free quotas limit: `elsewhere` those of models that another server runs, `always` all, or `never` any.

A model inside this process costs its operator nothing, so by default its calls are not limited; another server sends a
bill.
"""
FREE_QUOTAS: dict[str, int] = {"rerank": 1_000_000, "embedding": 1_000_000}
"""Tokens by model family that an account has for nothing (interface specification, Limits)."""
FREE_QUOTA_DAYS = 90
LEDGER_PRICES: dict[str, dict[str, int]] = {
    "rerank": {"input_tokens": 100},
    "embedding": {"input_tokens": 70},
    **prices(env.str("LEDGER_PRICES", default="")),
}
"""Nano-dollars (10⁻⁹ dollars) for one of a unit, by model name or family of models; a model's own entry counts in
place of its family's, and a unit without a price costs nothing.

| Family | Units |
|---|---|
| `chat` | `input_tokens`, `output_tokens` |
| `embedding`, `rerank` | `input_tokens` |
| `asr` (transcription) | `audio_seconds` of the recording, rounded up |
| `tts` (speech) | `characters` of the text |
| `image` | `image_count` |
| `video` | `video_count`, and `video_seconds` where the service says how long a video is |
| `realtime` | `input_tokens`, `output_tokens`, `dropped_tokens`, and `audio_seconds` of both sides, turn by turn |
| `realtime`, passed on | `conversations`: of a call that another service holds, only that there was one is known |

0.10 dollars for a million tokens are 100 for one; 0.006 dollars for a minute of audio are 100,000 for a second.
"""

# ── The page ─────────────────────────────────────────────────────────────────────────────────────────────────────────

PUBLIC_PAGE: str = env.str("PUBLIC_PAGE", default="guest" if DEBUG else "login")
"""Access to the voice page: `off`, `login` (signed-in people) or `guest` (everybody, within the guest limits)."""
GUEST_SESSIONS_PER_ADDRESS: int = env.int("GUEST_SESSIONS_PER_ADDRESS", default=20 if DEBUG else 2)
GUEST_SESSIONS_PER_HOUR: int = env.int("GUEST_SESSIONS_PER_HOUR", default=1000 if DEBUG else 10)
GUEST_SESSION_S: int = env.int("GUEST_SESSION_S", default=7200 if DEBUG else 180)
GUEST_SESSIONS_TOTAL: int = env.int("GUEST_SESSIONS_TOTAL", default=max(1, MAX_SESSIONS * 3 // 4))
