"""Processes that run LLVM: shared by threads, and by folders that hold other files."""

from __future__ import annotations

import os
import time
from pathlib import Path
from subprocess import PIPE, Popen
from threading import Thread

import pytest

from cuvil.codegen.unit import Unit
from cuvil.codegen.worker import Worker, Workers
from cuvil.errors import CompileError
from cuvil.pipeline import workers

TRIPLE = "x86_64-unknown-linux-gnu"


def _unit(name: str, text: str = "ret void") -> Unit:
    return Unit(f"define void @{name}() {{ {text} }}", TRIPLE, "x86-64", "", opt=0, emit="asm")


def test_threads_that_share_workers_get_their_own_code() -> None:
    pool, results = Workers(2), dict[int, list[bytes]]()

    def compile_some(caller: int) -> None:
        results[caller] = pool.compile([_unit(f"f{caller}_{i}") for i in range(4)])

    threads = [Thread(target=compile_some, args=(caller,)) for caller in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pool.close()
    for caller in range(4):
        names = [f"f{caller}_{i}:" for i in range(4)]
        assert all(n.encode() in code for n, code in zip(names, results[caller], strict=True))


def test_a_worker_imports_nothing_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pickle.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    worker = Worker()
    assert b"f:" in worker.compile(_unit("f"))
    worker.close()


def test_a_worker_says_what_llvm_said_and_goes_on() -> None:
    worker = Worker()
    with pytest.raises(CompileError, match="refused"):
        worker.compile(_unit("f", "ret nothing"))
    assert b"f:" in worker.compile(_unit("f"))
    worker.close()


def test_a_worker_is_stopped_and_closed_while_a_thread_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silent = ["sleep", "60"]
    monkeypatch.setattr(
        "cuvil.codegen.worker._start", lambda: Popen(silent, stdin=PIPE, stdout=PIPE)
    )
    for _ in range(100):
        worker, errors = Worker(), list[BaseException]()
        thread = Thread(target=_compile, args=(worker, errors))
        thread.start()
        while not worker._process:
            time.sleep(0)
        worker.stop()
        worker.close()
        thread.join()
        assert [type(error) for error in errors] == [CompileError]


def _compile(worker: Worker, errors: list[BaseException]) -> None:
    try:
        worker.compile(_unit("f"))
    except BaseException as error:
        errors.append(error)


def test_a_forked_process_has_workers_of_its_own() -> None:
    mine = workers()
    child = os.fork()
    if not child:
        os._exit(workers() is mine)
    assert os.waitpid(child, 0)[1] == 0
