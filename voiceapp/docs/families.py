"""The families of the reference: a page each, and which operations stand on it."""

from __future__ import annotations

from dataclasses import dataclass

NATIVE, COMPATIBLE = "/api/v1", "/compatible-mode/v1"


@dataclass(frozen=True, slots=True)
class Socket:
    """A WebSocket, which an OpenAPI document cannot describe."""

    path: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Family:
    slug: str
    """Its name in the address, and its anchor in the contents."""
    title: str
    lead: str
    """Purpose of the family, in a sentence or two."""
    roots: tuple[str, ...]
    """Beginnings of the paths of its operations. The longest root of all families decides."""
    manual: tuple[str, ...] = ()
    """Pages of the manual that say more."""
    sockets: tuple[Socket, ...] = ()
    former_anchor: str = ""
    """Anchor of links to a group of these operations from before each family had a page."""


FAMILIES = (
    Family(
        "realtime",
        "Realtime",
        "Spoken conversations. WebRTC and AOQ begin with an HTTP request; the WebSocket needs none.",
        (f"{NATIVE}/webrtc", f"{COMPATIBLE}/realtime"),
        ("connecting-a-program", "turns-and-interruptions", "session-features", "webrtc", "aoq"),
        (
            Socket("/api-ws/v1/realtime", "Conversations in the dialect of the hosted service."),
            Socket("/v1/realtime", "Conversations in OpenAI's dialect."),
            Socket("/api-ws/v1/inference", "Recognition and synthesis as tasks on one connection."),
        ),
    ),
    Family(
        "chat",
        "Chat",
        "Written conversations with a language model: whole or streamed, with function tools and structured output.",
        (
            f"{NATIVE}/services/aigc/text-generation/generation",
            f"{NATIVE}/services/aigc/multimodal-generation",
            f"{COMPATIBLE}/chat",
            f"{COMPATIBLE}/responses",
        ),
        ("language-model",),
        former_anchor="openai-compatible",
    ),
    Family(
        "embeddings",
        "Embeddings",
        "Texts made into vectors, by which texts of the same meaning are found.",
        (f"{NATIVE}/services/embeddings", f"{COMPATIBLE}/embeddings"),
        ("model-operations",),
        former_anchor="embedding-and-reranking",
    ),
    Family(
        "rerank",
        "Reranking",
        "Documents put in the order in which they fit a query, in the shapes of four families of clients.",
        (f"{NATIVE}/services/rerank/text-rerank/text-rerank", f"{COMPATIBLE}/rerank", "/compatible-api/v1"),
        ("model-operations",),
    ),
    Family(
        "audio",
        "Audio",
        "Recordings made into text or subtitles, and texts made into speech. Longer recordings and texts are tasks.",
        (f"{COMPATIBLE}/audio",),
        ("model-operations",),
    ),
    Family(
        "models",
        "Models",
        "Which models a key may use, under which names, and what each can do.",
        (f"{COMPATIBLE}/models",),
        ("models",),
    ),
    Family(
        "tasks",
        "Tasks",
        "Work that outlives its request. A task is created, followed or looked at, and its results are fetched.",
        (f"{NATIVE}/tasks", f"{NATIVE}/services"),
        ("tasks",),
    ),
    Family(
        "files",
        "Files",
        "Files that tasks read, and the results that they wrote.",
        (f"{NATIVE}/uploads", f"{NATIVE}/files"),
        ("tasks",),
    ),
    Family(
        "webhooks",
        "Webhooks",
        "Addresses of yours to which the server posts signed events.",
        (f"{NATIVE}/agentstudio", f"{NATIVE}/agentsvc"),
        ("webhooks",),
    ),
    Family(
        "accounts",
        "Accounts",
        "Temporary keys for places where an API key must not go.",
        (f"{NATIVE}/tokens",),
        ("api-keys", "prices-and-budgets", "limits"),
        former_anchor="temporary-tokens",
    ),
)
"""In the order in which they are read."""


def family_of(path: str) -> Family:
    """The family whose root is the longest beginning of `path`.

    Raises:
        LookupError: if no family has it: a new operation needs a place.
    """
    fitting = [(len(root), family) for family in FAMILIES for root in family.roots if path.startswith(root)]
    if not fitting:
        raise LookupError(f"No family of voiceapp/docs/families.py has {path}.")
    return max(fitting, key=lambda found: found[0])[1]
