"""Certificates that nobody vouches for."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path


def self_signed(folder: Path) -> ssl.SSLContext:
    """The server's side of TLS for 127.0.0.1; the certificate stands in `certificate.pem`."""
    key, certificate = str(folder / "key.pem"), str(folder / "certificate.pem")
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-days", "1", "-nodes", *subject]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True, timeout=60)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    return tls
