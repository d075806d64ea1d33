"""The models of this server, and what they run on."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from voiceapp.catalogue.cards import ModelCard
from voiceapp.catalogue.defaults import (
    LocalModelSettings,
    chat_cards,
    chat_model_file,
    image_cards,
    retrieval_cards,
    voice_cards,
    whisper_folder,
)
from voiceapp.catalogue.languages import KOKORO_LANGUAGES, speech_languages
from voiceapp.catalogue.mcp_servers import McpServer, read_mcp_servers
from voiceapp.catalogue.servers import ServerSettings
from voiceapp.catalogue.services import talks_with, with_fallbacks, with_services, without_embedded
from voiceapp.catalogue.speech_servers import speech_cards
from voiceapp.memory import memory_bytes
from voiceapp.settings.environment import env, network, stripped
from voiceapp.settings.installation import VAR_DIR
from voiceapp.settings.upstream import UPSTREAMS

# ── Models ───────────────────────────────────────────────────────────────────────────────────────────────────────────

MODELS_DIR = Path(env.str("MODELS_DIR", default=str(VAR_DIR / "models")))
"""Folder of the voice models; models/ in VAR_DIR without it."""
try:
    SPEECH_LANGUAGES: tuple[str, ...] = speech_languages(stripped(env.list("SPEECH_LANGUAGES", default=[])))
except ValueError as error:
    raise ImproperlyConfigured(f"SPEECH_LANGUAGES: {error}") from None
"""Languages of conversations and recordings beside English, such as de,es,fr, or all: they bring a second recognizer
(requirements-whisper.txt) with 150 MB of model files, fetched by `manage.py fetch_models`."""
EMBEDDED_MODELS: bool = env.bool("EMBEDDED_MODELS", default=True)
"""0 for a server whose models all run on others (UPSTREAM_BASE_URL, ASR_BASE_URL, …): it needs no weights, and is ready
while one of its models is."""
KOKORO_VOICE: bool = env.bool("KOKORO_VOICE", default=True)
"""Kokoro speaks the Spanish, French, Hindi, Italian and Portuguese of SPEECH_LANGUAGES: 63 MB of model files. It takes
half a core to make speech as fast as it is heard; 0 leaves them to espeak-ng, a robot that speaks to many callers at
once."""
VOICE_THREADS: int = env.int("VOICE_THREADS", default=max(2, min(4, os.cpu_count() or 1)))
"""Threads for turn detection, recognition and neural voices; the cores without it, at least 2 and up to 4."""
RECOGNITION_TERMS: list[str] = stripped(env.list("RECOGNITION_TERMS", default=[]))[:100]
"""Names that callers say, such as Siobhan,Kubernetes: up to 100 that recognition prefers to words that sound like
them."""
MODEL_FALLBACKS: list[str] = env.list("MODEL_FALLBACKS", default=[])
"""Models that stand in for one that cannot serve, before its reply has begun: chains such as plus>plus-there>assistant,
with commas between. The models of a chain are of one kind: chat, embedding, rerank, recognition, synthesis or
realtime."""
DOCUMENTS_DIR: str = env.str("DOCUMENTS_DIR", default="")
"""A folder of .md and .txt files from which the embedded assistant answers, besides this product's manual."""
_mcp_servers: str = env.str("MCP_SERVERS", default="")
try:
    MCP_SERVERS: tuple[McpServer, ...] = read_mcp_servers(Path(_mcp_servers)) if _mcp_servers else ()
except ValueError as error:
    raise ImproperlyConfigured(f"MCP_SERVERS: {error}") from None
"""A TOML file that lists MCP servers, whose tools language models may call (requirements-mcp.txt; the manual's page
about the language model has an example)."""

# ── Agents ────────────────────────────────────────────────────────────────────────────────────────────────────────────

MODEL_ALLOWED_NETWORKS: list[str] = env.list("MODEL_ALLOWED_NETWORKS", cast=network, default=[])
"""Networks that are not public in which operators may name model servers for agents, such as 192.168.0.0/16. The usual
ports of model servers on this machine need none."""
AGENTS_DIR: str = env.str("AGENTS_DIR", default="")
"""A folder of agents, each a TOML file; the admin then shows agents and does not edit them."""
AGENT_KEYS: dict[str, str] = env.dict("AGENT_KEYS", default={})
"""The keys of the model servers of the agents in that folder: NAME=KEY, with commas between."""

# ── Chat and the language model ───────────────────────────────────────────────────────────────────────────────────────

CHAT_BASE_URL: str = env.str("CHAT_BASE_URL", default="")
"""An OpenAI-compatible server for replies, such as http://127.0.0.1:11434/v1; the embedded assistant without it."""
CHAT_API_KEY: str = env.str("CHAT_API_KEY", default="")
CHAT_MODEL: str = env.str("CHAT_MODEL", default="")
"""The model's name there, or without CHAT_BASE_URL the one of UPSTREAM_CHAT_MODELS that conversations use."""
HF_ENDPOINT: str = env.str("HF_ENDPOINT", default="https://huggingface.co").rstrip("/")
"""Address of the hub that names such as hf:owner/repository:Q4_K_M refer to."""
CHAT_TIMEOUT_S: float = env.float("CHAT_TIMEOUT_S", default=60.0)
"""Seconds to wait for the server at CHAT_BASE_URL."""
CHAT_FIRST_WORD_S: float = env.float("CHAT_FIRST_WORD_S", default=10.0)
"""Seconds that a caller who listens waits for the first word of a reply before an apology; three times as long for a
model that shows that it is thinking. The other deadlines of a reply follow from it."""
if not 0.1 <= CHAT_FIRST_WORD_S <= 600:
    raise ImproperlyConfigured("CHAT_FIRST_WORD_S is a number of seconds from 0.1 to 600.")
CHAT_FILLERS: bool = env.bool("CHAT_FILLERS", default=True)
"""A caller who waits for a reply hears short sentences such as "Let me see."; 0 waits in silence."""
CHAT_CONTEXT: int = env.int("CHAT_CONTEXT", default=0)
"""Tokens that the model at CHAT_BASE_URL reads, its reply included; of a longer conversation the oldest exchanges are
left out. 0: as found out when that server refuses a conversation."""
CHAT_MODEL_FILE: str = env.str("CHAT_MODEL_FILE", default="")
"""A GGUF language model to run beside the server (requirements-llm.txt): a path, or an https address or a name such as
hf:owner/repository:Q4_K_M that `manage.py fetch_models` fetches once. The small model that comes with the server
without it."""
if CHAT_MODEL_FILE.startswith("http://"):
    raise ImproperlyConfigured("CHAT_MODEL_FILE is a path or an https address; http would let others change the file.")
CHAT_ENGINE: str = env.str("CHAT_ENGINE", default="")
"""Engine of replies in conversations: skills, skills and documents, and a language model to the instructions, functions
and formats of programs only; model, a language model alone; both, skills and documents first and the language model
after them. A server at CHAT_BASE_URL replies to everything also with both. Empty is both where CHAT_BASE_URL or
CHAT_MODEL_FILE names a model, else skills: the model that comes with the server does not converse."""
CHAT_ENGINE = {"auto": "both", "retrieval": "skills"}.get(CHAT_ENGINE, CHAT_ENGINE)  # their names before 1.1
if CHAT_ENGINE not in ("", "skills", "both", "model"):
    raise ImproperlyConfigured(f"CHAT_ENGINE is {CHAT_ENGINE!r}: write skills, both or model.")
CHAT_MODEL_SHA256: str = env.str("CHAT_MODEL_SHA256", default="").lower()
"""The sha256 of the file at that address, to be checked once it is here."""
LEAST_MODEL_MEMORY_BYTES = 1000 * 2**20
"""Least memory of a host that runs the small model unasked: the server takes up to 500 MiB, the model 350."""
CHAT_MODEL_THREADS: int = env.int("CHAT_MODEL_THREADS", default=max(1, (os.cpu_count() or 1) // 2))
"""Threads that write replies; half the cores without it."""
CHAT_MODEL_CONTEXT: int = env.int("CHAT_MODEL_CONTEXT", default=2048)
"""Tokens of a conversation and its reply together; of a longer one the oldest exchanges are left out."""
CHAT_MODEL_SLOTS: int = env.int("CHAT_MODEL_SLOTS", default=4)
"""Replies written at once; further ones wait. Each slot keeps a context of its own in memory."""
if min(CHAT_MODEL_THREADS, CHAT_MODEL_SLOTS) < 1 or CHAT_MODEL_CONTEXT < 256:
    raise ImproperlyConfigured(
        "CHAT_MODEL_THREADS and CHAT_MODEL_SLOTS are at least 1, and CHAT_MODEL_CONTEXT at least 256."
    )
INSPECTION_WORDS: str = env.str("INSPECTION_WORDS", default="")
"""A file with words and phrases, one in each line, that chat neither takes nor gives; empty inspects for none."""
INSPECTION_BASE_URL: str = env.str("INSPECTION_BASE_URL", default="")
"""Base address of a server with `/moderations` that is asked about what chat takes and gives; empty asks none."""
INSPECTION_API_KEY: str = env.str("INSPECTION_API_KEY", default="")
INSPECTION_MODEL: str = env.str("INSPECTION_MODEL", default="")
CHAT_SEES_IMAGES: bool = env.bool("CHAT_SEES_IMAGES", default=False)
"""The model of the server at CHAT_BASE_URL takes images."""
CHAT_READS_DOCUMENTS: bool = env.bool("CHAT_READS_DOCUMENTS", default=True)
"""The model of the server at CHAT_BASE_URL is given passages of the manual and of DOCUMENTS_DIR, to reply from them."""

# ── Pictures and speech by other servers ──────────────────────────────────────────────────────────────────────────────

IMAGES_BASE_URL: str = env.str("IMAGES_BASE_URL", default="")
"""Base address of a server with /images/generations, such as http://127.0.0.1:8080/v1; empty draws nothing."""
IMAGES_API_KEY: str = env.str("IMAGES_API_KEY", default="")
IMAGES_MODEL: str = env.str("IMAGES_MODEL", default="")
IMAGES_TIMEOUT_S: float = env.float("IMAGES_TIMEOUT_S", default=300.0)
ASR_BASE_URL: str = env.str("ASR_BASE_URL", default="")
"""A server that recognizes speech, such as http://127.0.0.1:8000/v1 with /audio/transcriptions, or
tcp://127.0.0.1:10300, a Wyoming server (requirements-wyoming.txt); the embedded model without it, and where it
fails."""
ASR_API_KEY: str = env.str("ASR_API_KEY", default="")
ASR_MODEL: str = env.str("ASR_MODEL", default="")
"""That server's name for its model. Without a server, the Whisper, in CTranslate2's form, that reads the
SPEECH_LANGUAGES: a folder, or the https address of a .tar, .tar.gz or .zip archive that `manage.py fetch_models`
fetches once. The small one that it brings without it."""
ASR_MODEL_SHA256: str = env.str("ASR_MODEL_SHA256", default="").lower()
"""The sha256 of the archive at that address, to be checked once it is here."""
ASR_LANGUAGES: list[str] = env.list("ASR_LANGUAGES", default=[])
"""The languages it knows, such as de,fr: those that a Wyoming server names without it, else any."""
ASR_TIMEOUT_S: float = env.float("ASR_TIMEOUT_S", default=10.0)
TTS_BASE_URL: str = env.str("TTS_BASE_URL", default="")
"""A server that speaks, such as http://127.0.0.1:8880/v1 with /audio/speech, or tcp://127.0.0.1:10200, a Wyoming
server."""
TTS_API_KEY: str = env.str("TTS_API_KEY", default="")
TTS_MODEL: str = env.str("TTS_MODEL", default="")
TTS_VOICES: list[str] = env.list("TTS_VOICES", default=[])
"""Its voices, each as NAME or NAME:LANGUAGE, such as anna:de,alloy; those that a Wyoming server names without it, else
OpenAI's six."""
TTS_TIMEOUT_S: float = env.float("TTS_TIMEOUT_S", default=10.0)
VOICES_DIR: str = env.str("VOICES_DIR", default="")
"""A folder of further neural voices: Piper models, each an .onnx file with its .onnx.json beside it, and models of
hibari."""
DEFAULT_VOICE: str = env.str("DEFAULT_VOICE", default="")
"""The voice of those who choose none, such as man, en-us (espeak-ng's, which needs little memory) or the name of a file
in VOICES_DIR. Without it, the neural voice woman; en-us where memory is short."""
NEURAL_VOICE_MIN_MEMORY_MB: int = env.int("NEURAL_VOICE_MIN_MEMORY_MB", default=1024)
"""Megabytes of memory below which a machine or container counts as short of it."""

# ── Embedding and reranking ───────────────────────────────────────────────────────────────────────────────────────────

EMBEDDING_THREADS: int = env.int("EMBEDDING_THREADS", default=min(4, os.cpu_count() or 1))
"""Threads of low priority that share the texts of a call, in embedding and reranking; the cores without it, up to 4."""
EMBEDDING_BASE_URL: str = env.str("EMBEDDING_BASE_URL", default="")
"""A server with /embeddings, such as http://127.0.0.1:8080/v1; the embedded model without it."""
EMBEDDING_API_KEY: str = env.str("EMBEDDING_API_KEY", default="")
EMBEDDING_MODEL: str = env.str("EMBEDDING_MODEL", default="")
EMBEDDING_TIMEOUT_S: float = env.float("EMBEDDING_TIMEOUT_S", default=60.0)
RERANK_BASE_URL: str = env.str("RERANK_BASE_URL", default="")
"""A server with /rerank, such as http://127.0.0.1:8080/v1; the embedded engine without it."""
RERANK_API_KEY: str = env.str("RERANK_API_KEY", default="")
RERANK_MODEL: str = env.str("RERANK_MODEL", default="")
RERANK_TIMEOUT_S: float = env.float("RERANK_TIMEOUT_S", default=60.0)
RERANK_SHAPE: str = env.str("RERANK_SHAPE", default="documents")
"""Name of the documents' field there: texts for Text Embeddings Inference, documents for all others."""

_chat_file = chat_model_file(CHAT_MODEL_FILE, MODELS_DIR)
CHAT_ENGINE_NOTE = ""
"""Reason why a language model is not run here although none was refused; logged at the start."""
_local: LocalModelSettings | None = None
if EMBEDDED_MODELS and (CHAT_MODEL_FILE or not CHAT_BASE_URL):
    if find_spec("xllamacpp") is None:
        CHAT_ENGINE_NOTE = "xllamacpp is not installed (requirements-llm.txt): no language model runs here."
    elif CHAT_ENGINE != "model" and not CHAT_MODEL_FILE and memory_bytes() < LEAST_MODEL_MEMORY_BYTES:
        CHAT_ENGINE_NOTE = (
            f"{memory_bytes() // 2**20} MiB of memory: no language model runs here, which takes "
            f"{LEAST_MODEL_MEMORY_BYTES // 2**20}. CHAT_ENGINE=model runs it all the same."
        )
    else:
        _local = LocalModelSettings(
            _chat_file,
            CHAT_MODEL_THREADS,
            CHAT_MODEL_CONTEXT,
            CHAT_MODEL_SLOTS,
            CHAT_TIMEOUT_S,
            idle_s=None if CHAT_MODEL_FILE else 600.0,
            is_small=not CHAT_MODEL_FILE,
        )
LOCAL_CHAT: LocalModelSettings | None = _local
"""The language model that runs here."""
BRINGS_LANGUAGE_MODEL: bool = not (CHAT_BASE_URL or CHAT_MODEL_FILE)
"""`fetch_models` brings the small language model, since none other replies to programs."""
_whisper = "" if ASR_BASE_URL else ASR_MODEL
if _whisper.startswith("http://"):
    raise ImproperlyConfigured("ASR_MODEL is a folder or an https address; http would let others change the model.")
WHISPER_DIR: Path = whisper_folder(_whisper, MODELS_DIR)
"""Folder of the Whisper that reads other languages."""
WHISPER_URL: str = _whisper if SPEECH_LANGUAGES and _whisper.startswith("https://") else ""
"""Address of its archive, if it has one."""
BRINGS_WHISPER: bool = bool(SPEECH_LANGUAGES) and not _whisper
"""`fetch_models` brings that Whisper."""
BRINGS_KOKORO: bool = KOKORO_VOICE and not set(KOKORO_LANGUAGES).isdisjoint(SPEECH_LANGUAGES)
"""`fetch_models` brings that voice."""
_own: list[ModelCard] = [
    *chat_cards(
        ServerSettings(CHAT_BASE_URL, CHAT_API_KEY, CHAT_MODEL, CHAT_TIMEOUT_S),
        sees_images=CHAT_SEES_IMAGES,
        local=_local,
        engine=CHAT_ENGINE,
        reads_documents=CHAT_READS_DOCUMENTS and EMBEDDED_MODELS,
        context_tokens=CHAT_CONTEXT,
    ),
    *speech_cards(
        ServerSettings(ASR_BASE_URL, ASR_API_KEY, ASR_MODEL, ASR_TIMEOUT_S),
        ServerSettings(TTS_BASE_URL, TTS_API_KEY, TTS_MODEL, TTS_TIMEOUT_S),
        voice_cards(languages=SPEECH_LANGUAGES, whisper=WHISPER_DIR),
        languages=ASR_LANGUAGES,
        voices=TTS_VOICES,
    ),
    *retrieval_cards(
        ServerSettings(EMBEDDING_BASE_URL, EMBEDDING_API_KEY, EMBEDDING_MODEL, EMBEDDING_TIMEOUT_S),
        ServerSettings(RERANK_BASE_URL, RERANK_API_KEY, RERANK_MODEL, RERANK_TIMEOUT_S),
        rerank_shape=RERANK_SHAPE,
    ),
    *image_cards(ServerSettings(IMAGES_BASE_URL, IMAGES_API_KEY, IMAGES_MODEL, IMAGES_TIMEOUT_S)),
]
_all = with_services(_own, UPSTREAMS)
if not EMBEDDED_MODELS:
    _all = without_embedded(_all)
if CHAT_MODEL and not CHAT_BASE_URL and any(service.chat_models for service in UPSTREAMS):
    _all = talks_with(_all, CHAT_MODEL)
VOICE_MODELS: list[ModelCard] = with_fallbacks(_all, MODEL_FALLBACKS)
"""The models of this server. The first of a kind is the one that a conversation uses."""
