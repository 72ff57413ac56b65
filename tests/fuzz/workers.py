"""Worker processes that answer a line with a line: what ends one is an answer too."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass

RSS_LIMIT = 2 << 30  # bytes in memory
POLL = 0.2  # seconds


@dataclass
class Worker:
    """A process of `python -m MODULE --worker`, started when needed."""

    module: str
    process: subprocess.Popen[str] | None = None

    def ask(self, line: str, time_limit: float, rss_limit: int = RSS_LIMIT) -> str:
        """Its answer; "fault: ..." where it ended, took too long, or too much memory."""
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
        except BrokenPipeError:
            return self._ended()
        deadline = time.monotonic() + time_limit
        while not select.select([process.stdout], [], [], POLL)[0]:
            if time.monotonic() > deadline:
                return self._kill("fault: took too long")
            if _rss(process.pid) > rss_limit:
                return self._kill("fault: too much memory")
        return process.stdout.readline().strip() or self._ended()

    def _running(self) -> subprocess.Popen[str]:
        if self.process is None or self.process.poll() is not None:
            paths = os.pathsep.join(p or os.getcwd() for p in sys.path)
            self.process = subprocess.Popen(
                [sys.executable, "-m", self.module, "--worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": paths},
            )
        return self.process

    def _kill(self, why: str) -> str:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None
        return why

    def _ended(self) -> str:
        assert self.process is not None
        status = self.process.wait()
        self.process = None
        return f"fault: the process ended with status {status}"

    def close(self) -> None:
        """Lets it end."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait()


def _rss(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0
