"""`make demo`: two real models become native libraries, are checked, timed and called from C.

A voice activity detector listens to a made-up voice, a text recogniser reads a line of print. Both
come from packages of requirements-models.txt; what is made goes to build/demo.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import cuvil
from cuvil.aot.write import Artefact, compile_to_folder
from cuvil.cli.bench_command import own_call
from cuvil.cli.peers import peer
from cuvil.cli.timing import interleaved, speedups
from cuvil.options import Options
from tools.draw import bars, dots
from tools.models import samples, zoo
from tools.models.c_program import c_compiler
from tools.models.case import ModelCase, ZooError
from tools.models.judge import OnnxRuntime, bound_ratio

ROOT = Path(__file__).parents[1]
OUT = Path("build", "demo")
LISTEN = Path("examples", "vad", "listen.c")
RATE, CONTEXT, CHUNK = 16000, 64, 512
NO_COMPILER = """\
   There is no C compiler, so this step is left out. Get one and run again:
   apt-get install gcc (Debian), dnf install gcc (Fedora), or pip install ziglang"""
Arrays = Mapping[str, np.ndarray]
Run = Callable[[Arrays], list[np.ndarray]]


class DemoError(RuntimeError):
    """Something that the demo shows is not so; the message says what."""


@dataclass(frozen=True)
class Subject:
    """A model of the demo: compiled, loaded on one thread, with ONNX Runtime beside it."""

    case: ModelCase
    artefact: Artefact
    engine: cuvil.Engine
    peer: OnnxRuntime

    def ours(self, inputs: Arrays) -> list[np.ndarray]:
        return self.engine.run(None, inputs)

    def theirs(self, inputs: Arrays) -> list[np.ndarray]:
        return list(self.peer.outputs(inputs).values())


def main() -> int:
    """Exit status 0 when all that is printed was checked."""
    started = time.perf_counter()
    try:
        run()
    except (DemoError, ZooError, cuvil.Error) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    print(f"All of it was checked. {time.perf_counter() - started:.0f} s; files: {OUT}")
    return 0


def run(folder: Path = ROOT / OUT, seconds: float = 3.0) -> None:
    """All steps; seconds: how long to time each model. Raises DemoError, cuvil.Error, ZooError."""
    with step("1. Compile two models into C libraries"):
        listener = compiled("silero-vad", "vad", folder)
        reader = compiled("ocr-rec", "reader", folder)
    with step("2. Listen: where in a sound is speech?"):
        sound = voice()
        heard = show_speech(listener, sound)
    with step("3. Read: what does a line of print say?"):
        line = show_reading(reader)
    with step("4. Time: one thread, both engines in turn, medians"):
        frame = speech_inputs(sound[:CHUNK], np.zeros(CONTEXT, np.float32), None)
        show_times(listener, frame, "32 ms of sound", seconds)
        show_times(reader, line, "a line of print", seconds)
    with step("5. Listen again, from a C program"):
        show_c_program(listener.artefact, sound, heard, folder)


@contextmanager
def step(title: str) -> Iterator[None]:
    """A heading, and at the end the time that the step took."""
    print(title, flush=True)
    started = time.perf_counter()
    yield
    print(f"   [{time.perf_counter() - started:.1f} s]\n", flush=True)


def compiled(zoo_name: str, name: str, folder: Path) -> Subject:
    """A zoo model as a library in a folder of its own, loaded."""
    case = zoo.get(zoo_name)
    print(f"   cuvil compile {case.path.name} -o {OUT / name} --name {name}", flush=True)
    started = time.perf_counter()
    artefact = compile_to_folder(case.path, folder / name, Options(name=name))
    seconds = time.perf_counter() - started
    library, weights = artefact.files["so"], artefact.manifest["weights_bytes"]
    print(
        f"   -> {library.name}, {library.stat().st_size / 1e6:.1f} MB "
        f"({weights / 1e6:.1f} MB weights), {seconds:.1f} s",
        flush=True,
    )
    engine = cuvil.load(library, threads=1)
    return Subject(case, artefact, engine, OnnxRuntime(case, threads=1))


def voice() -> np.ndarray:
    """float32 samples at 16 kHz: quiet noise all through, and a voice that speaks twice."""
    pause = np.zeros(int(0.3 * RATE), np.float32)
    parts = [pause, samples.speech(1.0), pause, samples.speech(0.7), pause]
    sound = np.concatenate(parts)
    noise = np.random.default_rng(0).normal(0, 5e-4, sound.size).astype(np.float32)
    return (sound + noise)[: sound.size // CHUNK * CHUNK]


def show_speech(listener: Subject, sound: np.ndarray) -> np.ndarray:
    """Prints what both engines hear; returns the probability of each chunk as cuvil gives it."""
    ours, theirs = listen(listener.ours, sound), listen(listener.theirs, sound)
    loudness = np.abs(sound.reshape(-1, CHUNK)).max(axis=1)
    print(f"   {len(sound) / RATE:.1f} s of made-up voice, a bar for each {CHUNK / RATE:.3f} s")
    print(f"   loudness      {bars(loudness / loudness.max())}")
    print(f"   Cuvil         {bars(ours)}")
    print(f"   ONNX Runtime  {bars(theirs)}")
    check("probabilities", ours, theirs)
    quiet, spoken = ours[loudness < 0.01], ours[loudness > 0.1]
    if np.median(spoken) < 0.5 or np.median(quiet) > 0.1:
        raise DemoError("the detector does not tell the voice from silence")
    return ours


def listen(model: Run, sound: np.ndarray) -> np.ndarray:
    """The probability of speech in each chunk; the state passes from call to call."""
    state, before, found = None, np.zeros(CONTEXT, np.float32), []
    for chunk in sound.reshape(-1, CHUNK):
        probability, state = model(speech_inputs(chunk, before, state))
        before = chunk[-CONTEXT:]
        found.append(probability[0, 0])
    return np.array(found, np.float32)


def speech_inputs(chunk: np.ndarray, before: np.ndarray, state: np.ndarray | None) -> Arrays:
    """The detector's inputs: new samples behind those before them, its state (None: fresh)."""
    fresh = np.zeros((2, 1, 128), np.float32) if state is None else state
    sound = np.concatenate([before, chunk])[None]
    return {"input": sound, "state": fresh, "sr": np.array(RATE, np.int64)}


def show_reading(reader: Subject) -> Arrays:
    """Prints a line of print as dots and what both engines read; returns the input."""
    image = samples.printed((samples.LINE,), 48, 320)
    pale = (int(image.min()) + int(image.max())) // 2
    for text in filter(None, dots(image[::2, ::2, 0] < pale)):
        print(f"   {text}")
    inputs = {"x": samples.planes(image, -1, 1)}
    (ours,), (theirs,) = reader.ours(inputs), reader.theirs(inputs)
    text = samples.printed_text(ours, reader.case.path)
    print(f"   Cuvil reads         {text}")
    print(f"   ONNX Runtime reads  {samples.printed_text(theirs, reader.case.path)}")
    check("probabilities", ours, theirs)
    if text != samples.LINE:
        raise DemoError(f"the line says {samples.LINE!r}, and {text!r} was read")
    return inputs


def check(what: str, ours: np.ndarray, theirs: np.ndarray) -> None:
    """Prints the largest difference. Raises DemoError where it is over the bound."""
    ratio = bound_ratio(ours, theirs)
    largest = float(np.abs(ours - theirs).max())
    print(
        f"   {ours.size} {what}: largest difference {largest:.1e}, {ratio:.2f} of what is allowed"
    )
    if ratio > 1:
        raise DemoError(f"{what} differ from ONNX Runtime's by {ratio:.3g} times the bound")


def show_times(subject: Subject, inputs: Arrays, what: str, seconds: float) -> None:
    """Prints the medians of both engines, and their ratio."""
    calls = {
        "Cuvil": own_call(subject.engine, inputs),
        "ONNX Runtime": peer("onnxruntime").load(subject.case.path, inputs, threads=1),
    }
    timings = interleaved({name: call.run for name, call in calls.items()}, budget_s=seconds)
    ratio = speedups(timings, "Cuvil")["ONNX Runtime"]
    times = ", ".join(f"{name} {timing.median * 1e3:.3f} ms" for name, timing in timings.items())
    print(f"   {what:15}  {times}: {ratio:.2f} times as fast", flush=True)


def show_c_program(artefact: Artefact, sound: np.ndarray, heard: np.ndarray, folder: Path) -> None:
    """Builds examples/vad/listen.c with the library, runs it, compares what it wrote."""
    compiler = c_compiler()
    if compiler is None:
        print(NO_COMPILER)
        return
    program, raw, results = (shown(folder / name) for name in ("listen", "sound.raw", "speech.raw"))
    sound.tofile(folder / "sound.raw")
    library = shown(artefact.files["so"])
    place = str(Path(library).parent)
    flags = ["-I", place, str(LISTEN), library, f"-Wl,-rpath,{place}"]
    call([*compiler, *flags, "-o", program])
    heading = f"   C{' ' * 13}"
    print(heading + call([program, raw, results]).strip())
    from_c = np.fromfile(folder / "speech.raw", np.float32)
    if from_c.tobytes() != heard.tobytes():
        raise DemoError("the C program's probabilities differ from Python's")
    print(f"   {from_c.size} probabilities from C and from Python: the same to the last bit")


def shown(path: Path) -> str:
    """A path as seen from the repository's root, where commands run."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def call(command: list[str]) -> str:
    """Prints a command, runs it in the root, returns what it prints.

    Raises DemoError with its complaint when it fails.
    """
    print(f"   {shlex.join(command)}", flush=True)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DemoError(f"{shlex.join(command)} failed: {done.stderr.strip()}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
