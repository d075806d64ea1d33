"""A Redis server of a test's own, on a socket in a folder that nobody else knows, and on a port where it has to be."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path
from time import monotonic

START_S = 60.0


class RedisServer:
    """Debian's redis-server, keeping nothing on disk. It can be stopped and started again."""

    def __init__(self, folder: Path, *, port: int = 0, has_tls: bool = False) -> None:
        """With a port it listens there as well, with TLS by the certificate of `self_signed` in the folder."""
        self.port = port
        self._listens = ["--port", str(port)]
        if has_tls:
            files = ["--tls-cert-file", "certificate.pem", "--tls-key-file", "key.pem", "--tls-auth-clients", "no"]
            self._listens = ["--port", "0", "--tls-port", str(port), *files]
        self._socket = folder / "redis.sock"
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"unix://{self._socket}"

    def start(self) -> None:
        program = shutil.which("redis-server")
        assert program is not None, "redis-server is missing: apt-get install redis-server"
        self._process = subprocess.Popen(
            [program, *self._listens, "--unixsocket", str(self._socket), "--save", "", "--appendonly", "no"],
            cwd=self._socket.parent,
            stdout=subprocess.DEVNULL,
        )
        deadline = monotonic() + START_S
        while not self._answers():
            assert self._process.poll() is None, "redis-server ended by itself"
            assert monotonic() < deadline, "redis-server does not answer"

    def stop(self) -> None:
        """As when the machine under it fails."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._socket.unlink(missing_ok=True)
            self._process = None

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(START_S)
            try:
                connection.connect(str(self._socket))
                connection.sendall(b"PING\r\n")
                return connection.recv(7) == b"+PONG\r\n"
            except OSError:
                return False
