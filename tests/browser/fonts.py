"""Fonts for the browser that are the same on every machine: a narrow set and a wide one.

DejaVu is as wide as Verdana, the widest of the fonts that common systems use for text. Arimo, Tinos and Cousine have
the widths of Arial, Times New Roman and Courier New.
"""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

from .npm_packages import packages

FONTS = {
    "narrow": ("@expo-google-fonts", {"sans-serif": "Arimo", "serif": "Tinos", "monospace": "Cousine"}),
    "wide": (
        "dejavu-fonts-ttf/ttf",
        {"sans-serif": "DejaVu Sans", "serif": "DejaVu Serif", "monospace": "DejaVu Sans Mono"},
    ),
}
"""Name of a set: folder of its fonts under node_modules, and its family for each generic one."""


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="fontconfig-")


@functools.cache
def fontconfig_file(fonts: str) -> Path:
    """A fontconfig file that knows one set of fonts and no font of this machine."""
    folder, families = FONTS[fonts]
    aliases = "".join(
        f'<alias binding="same"><family>{name}</family><prefer><family>{family}</family></prefer></alias>'
        for name, family in {**families, "system-ui": families["sans-serif"]}.items()
    )
    usual = f'<edit name="family" mode="append_last"><string>{families["sans-serif"]}</string></edit>'
    file = Path(_folder().name, f"{fonts}.conf")
    file.write_text(
        '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd"><fontconfig>'
        f"<dir>{escape(str(packages() / folder))}</dir><cachedir>{escape(_folder().name)}/cache</cachedir>"
        f'{aliases}<match target="pattern">{usual}</match></fontconfig>'
    )
    return file
