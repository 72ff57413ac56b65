"""Compiles units in processes of their own: LLVM holds one lock, and a fatal error of its ends the
process that it happens in."""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import IO

from cuvil.codegen.unit import Unit, compile_unit
from cuvil.errors import CompileError

_LENGTH = struct.Struct("<Q")
STARTED_EARLY = 4  # workers: small models have no units for more


class Worker:
    """One process that compiles units, one after another; started when first used.

    Threads that share one wait for each other: a unit's answer is the next thing in its pipe.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    def compile(self, unit: Unit) -> bytes:
        """The unit's object. Raises CompileError with LLVM's message, or when the process died."""
        with self._lock:
            return self._answer(unit)

    def _answer(self, unit: Unit) -> bytes:
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        try:
            _send(process.stdin, pickle.dumps(unit))
            answer = _receive(process.stdout)
        except (BrokenPipeError, EOFError) as error:
            status = process.wait()
            self._process = None
            raise CompileError(
                f"code generation for {unit.triple} ended with status {status}; this is a fault "
                "of the compiler, not of the model: try a lower --opt-level and report it"
            ) from error
        good, body = answer[:1] == b"+", answer[1:]
        if not good:
            raise CompileError(f"LLVM refused generated code for {unit.triple}: {body.decode()}")
        return body

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            try:
                self._process = _start()
            except OSError as error:
                raise CompileError(f"no process for code generation: {error}") from error
        return self._process

    def start(self) -> None:
        """Begins to start the process, for a unit that comes soon; failing is left to that one."""
        with self._lock, suppress(CompileError):
            self._running()

    def close(self) -> None:
        """Ends the process when it has answered; after `stop`, at once.

        A thread may still wait for it: Python 3.11 takes one for ended whose join was interrupted.
        """
        with self._lock:
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()
                self._process.wait()
                self._process = None

    def stop(self) -> None:
        """Ends the process whatever it is at; who waits for it gets a CompileError."""
        process = self._process  # the thread that waits may forget it meanwhile
        if process is not None:
            process.kill()


class Workers:
    """A fixed number of workers that share a list of units.

    Units of bitcode are the same for every model of a target, so their objects are kept.
    """

    def __init__(self, count: int) -> None:
        self._workers = [Worker() for _ in range(max(1, count))]
        self._kept: dict[Unit, bytes] = {}

    def start(self) -> None:
        """Begins to start some workers while their units are still to be made."""
        for worker in self._workers[:STARTED_EARLY]:
            worker.start()

    def compile(self, units: Sequence[Unit]) -> list[bytes]:
        """The objects of all units, in order; the largest are compiled first."""
        results = [self._kept.get(unit) for unit in units]
        failures: list[BaseException] = []
        lacking = [i for i, made in enumerate(results) if made is None]
        waiting = sorted(lacking, key=lambda i: (bool(units[i].bitcode), len(units[i].ir)))

        def work(worker: Worker) -> None:
            while waiting and not failures:
                try:
                    i = waiting.pop()
                except IndexError:
                    return
                try:
                    results[i] = worker.compile(units[i])
                except BaseException as error:  # handed to the caller below
                    failures.append(error)

        threads = [Thread(target=work, args=(w,)) for w in self._workers[: len(waiting)]]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException:  # interrupted: nobody asks for the rest
            waiting.clear()
            for worker in self._workers:
                worker.stop()
            raise
        if failures:
            raise failures[0]
        self._kept |= {u: r for u, r in zip(units, results, strict=True) if u.bitcode and r}
        return [r for r in results if r is not None]

    def close(self) -> None:
        """Ends all processes."""
        for worker in self._workers:
            worker.close()


def _start() -> subprocess.Popen[bytes]:
    """A worker's process. It imports what this one does, and nothing from the working folder:
    models are downloaded with other files beside them, and `python -m` would look there first."""
    path = os.pathsep.join(p for p in sys.path if p)
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "cuvil.codegen.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        process_group=0,  # Ctrl-C is for the parent, which stops its workers
    )


def _send(stream: IO[bytes], data: bytes) -> None:
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes:
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(header)
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data


def main() -> None:
    """Serves units from standard input until it ends. Only its parent writes there."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            data = _receive(source)
        except EOFError:
            return
        try:
            answer = b"+" + compile_unit(pickle.loads(data))
        except Exception as error:
            answer = b"-" + (str(error) or type(error).__name__).encode()
        try:
            _send(sink, answer)
        except BrokenPipeError:  # the parent was killed
            os._exit(1)  # without a last word about what could not be written


if __name__ == "__main__":
    main()
