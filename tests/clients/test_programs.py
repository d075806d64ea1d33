"""The programs of the page "Connect your program", run as it prints them: each prints what it says it prints."""

from __future__ import annotations

import html
import re
import urllib.request
from pathlib import Path

import pytest

from tests.clients.environments import is_tried, reached, run
from tests.realtime.product import Product
from voiceapp.docs.connect import KEY, LIBRARIES

PROMISE = re.compile(r"(?:#|//) prints: (.+)$", re.MULTILINE)
TAG = re.compile(r"<[^>]+>")
SHOWN = re.compile(r'<code tabindex="0" data-program>(.*?)</code>', re.DOTALL)
ENVIRONMENTS = {
    "openai_chat.py": "openai-agents",
    "openai_realtime.py": "openai-agents",
    "openai_agents_realtime.py": "openai-agents",
    "pipecat_bot.py": "pipecat",
    "livekit_agent.py": "livekit",
    "llamaindex_chat.py": "llamaindex",
    "litellm_chat.py": "litellm",
    "openai_realtime.mjs": "javascript",
    "websocket.mjs": "javascript",
    "openai_agents_realtime.mjs": "javascript",
    "ai_sdk.mjs": "javascript",
}
"""Of programs whose library is not among those of the tests."""
IN_BROWSER = ("browser.html", "browser_server.py")
FILES = [example.file for library in LIBRARIES for example in library.examples if example.file not in IN_BROWSER]
WORDS = {"curl.sh": ["2 plus 2 is 4.", "welve times twelve"]}
"""What a program without comments prints."""


def printed(product: Product, address: str) -> dict[str, str]:
    """The programs by file, as a visitor copies them who reaches the server at an address."""
    asked = urllib.request.Request(f"{product.origin}/docs/connect", headers={"Host": address})
    with urllib.request.urlopen(asked) as page:
        shown = [html.unescape(TAG.sub("", found)) for found in SHOWN.findall(page.read().decode())]
    files = [example.file for library in LIBRARIES for example in library.examples]
    return dict(zip(files, shown, strict=True))


@pytest.mark.parametrize("name", [name for name in FILES if is_tried(ENVIRONMENTS.get(name, ""))])
def test_a_program_prints_what_it_promises(name: str, product: Product, tmp_path: Path) -> None:
    with reached(name, product.address, tmp_path) as (address, variables):
        text = printed(product, address)[name]
        if variables:  # the same as a server says it that knows of the proxy in front of it
            text = text.replace(f"http://{address}", f"https://{address}")
        assert KEY in text
        program = tmp_path / name
        program.write_text(text.replace(KEY, product.keys["good"]))
        said = run(program, ENVIRONMENTS.get(name, ""), **variables)

    promised = WORDS.get(name) or PROMISE.findall(text)
    assert promised, "a program that prints nothing shows nothing"
    for words in promised:
        assert words in said
    for sound in re.findall(r'"(reply\.\w+)"', text):
        assert (tmp_path / sound).stat().st_size > 2_000
