"""An sshd of our own on this machine: a high port of the loopback, its keys in a test's folder."""

from __future__ import annotations

import getpass
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

PATIENCE_S = 20
SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
PasswordAuthentication no
StrictModes no
UsePAM no
{sftp}
"""
CLIENT = """\
Host *
  IdentityFile {folder}/user_key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  StrictHostKeyChecking accept-new
  LogLevel ERROR
"""


@dataclass(frozen=True)
class Server:
    """address: `user@host:port`. config: a client's file that has the key."""

    address: str
    config: Path


def _keys(folder: Path) -> None:
    for name in ("host_key", "user_key"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def _free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


def _ready(server: subprocess.Popen[str], port: int) -> bool:
    """Whether it takes connections; False when it has ended."""
    end = time.monotonic() + PATIENCE_S
    while server.poll() is None and time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(0.05)
    return False


def _logs_in(server: Server, port: int) -> subprocess.CompletedProcess[str]:
    command = ["ssh", "-F", str(server.config), "-o", "BatchMode=yes", "-p", str(port)]
    user = server.address.rpartition(":")[0]
    return subprocess.run([*command, user, "true"], capture_output=True, text=True, check=False)


@contextmanager
def running_sshd(folder: Path, sftp: bool = True) -> Iterator[Server]:
    """A server that this user may log in to; skips the test where there cannot be one. sftp:
    whether it has what today's scp copies by; small machines' have not."""
    program = shutil.which("sshd") or shutil.which("/usr/sbin/sshd")
    if program is None or shutil.which("ssh") is None:
        pytest.skip("no sshd on this machine (Debian: openssh-server)")
    with suppress(OSError):  # what Debian's service makes; sshd wants it when root starts it
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    _keys(folder)
    port = _free_port()
    subsystem = "Subsystem sftp internal-sftp" if sftp else ""
    for name, text in (("server", SERVER), ("client", CLIENT)):
        (folder / name).write_text(text.format(folder=folder, port=port, sftp=subsystem))
    made = Server(f"{getpass.getuser()}@127.0.0.1:{port}", folder / "client")
    log = folder / "log"
    server = subprocess.Popen(
        [program, "-D", "-f", folder / "server", "-E", log], text=True, stdin=subprocess.DEVNULL
    )
    try:
        if not _ready(server, port):
            pytest.skip(f"sshd does not start here: {log.read_text().strip()}")
        login = _logs_in(made, port)
        if login.returncode:
            pytest.skip(f"sshd lets nobody in here: {login.stderr}{log.read_text()}".strip())
        yield made
    finally:
        server.terminate()
        server.wait()
