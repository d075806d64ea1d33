"""The certificate of a relay: short-lived and self-signed, so that browsers accept it by its fingerprint.

Browsers take a certificate by fingerprint only if its key is ECDSA and it is valid for at most 14 days (WebTransport,
"custom certificate requirements"). The processes of one installation share theirs in a folder, because a grant names
several relays and one fingerprint.
"""

from __future__ import annotations

import ipaddress
import os
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

VALID = timedelta(days=13)
REPLACED_AFTER = timedelta(days=10)
BACKDATED = timedelta(hours=1)
"""Clocks of callers are wrong by minutes; the hour counts toward the 14 days."""


class RelayCertificate:
    """The certificate and its key in one PEM file, which is replaced as a whole."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "relay.pem"

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate, in lower-case hexadecimal.

        Raises:
            OSError: if the file cannot be read.
            ValueError: if it holds no certificate.
        """
        return self._certificate().fingerprint(SHA256()).hex()

    def renew(self, endpoint: str, now: datetime) -> bool:
        """Mint one for this host name or address, if there is none or it is too old; returns whether it did.

        Raises:
            OSError: the file cannot be written.
        """
        try:
            begun = self._certificate().not_valid_before_utc + BACKDATED
            if timedelta(0) <= now - begun < REPLACED_AFTER:
                return False
        except (OSError, ValueError):
            pass
        self._write(mint(endpoint, now))
        return True

    def _certificate(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.path.read_bytes())

    def _write(self, pem: bytes) -> None:
        """Put it in the place of the one before at once: a relay may be reading."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=self.path.parent, suffix=".pem")  # for the owner alone
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(pem)
            Path(name).replace(self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def mint(endpoint: str, now: datetime) -> bytes:
    """A fresh certificate and its key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "AOQ relay")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now.astimezone(UTC) - BACKDATED)
        .not_valid_after(now.astimezone(UTC) - BACKDATED + VALID)
        .add_extension(x509.SubjectAlternativeName([_subject(endpoint)]), critical=False)
        .sign(key, SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM) + private


def _subject(endpoint: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(endpoint))
    except ValueError:
        return x509.DNSName(endpoint)
