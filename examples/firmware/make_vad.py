"""Silero's voice activity detector for a board: vad.onnx, and sound.h with a sound to listen to.

python make_vad.py [FOLDER]

The model comes with `pip install silero-vad`. The sound is made up: noise, and a voice amid it.
Beside it stands what ONNX Runtime says of each 32 ms (`pip install onnxruntime`).
"""

import shutil
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import silero_vad

RATE, CHUNK, CONTEXT, CHUNKS = 16000, 512, 64, 40
VOWELS = ((730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240))  # formants in Hz


def voice(count: int) -> np.ndarray:
    """`count` samples of three vowels, a quarter of a second each, over and over."""
    time = np.arange(count) / RATE
    pitch = 120 + 25 * np.sin(2 * np.pi * 0.7 * time)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    formants = np.array(VOWELS)[(time * 4).astype(int) % len(VOWELS)]
    sound = np.zeros(count)
    for harmonic in range(1, 50):
        away = (harmonic * pitch[:, None] - formants) / (60 + 0.08 * formants)
        sound += (1 / (1 + away**2) * (1.0, 0.5, 0.25)).sum(1) * np.sin(harmonic * phase)
    return sound * np.sin(np.pi * (time * 4 % 1)) ** 0.5 / np.abs(sound).max()


def record() -> np.ndarray:
    """CHUNKS * CHUNK samples of 16 bits."""
    sound = np.random.default_rng(1).normal(0, 0.003, CHUNKS * CHUNK)
    start, count = CHUNKS * CHUNK // 4, CHUNKS * CHUNK // 2
    sound[start : start + count] += 0.25 * voice(count)
    return (sound.clip(-1, 1) * 32767).astype(np.int16)


def probabilities(model: Path, sound: np.ndarray) -> list[float]:
    """ONNX Runtime's, of speech in each chunk; the state passes from call to call."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    samples = np.concatenate([np.zeros(CONTEXT), sound / 32768]).astype(np.float32)
    state, found = np.zeros((2, 1, 128), np.float32), []
    for at in range(0, len(sound), CHUNK):
        heard = samples[None, at : at + CONTEXT + CHUNK]
        output, state = session.run(None, {"input": heard, "state": state})
        found.append(float(output[0, 0]))
    return found


def write_sound(path: Path, sound: np.ndarray, expected: list[float]) -> None:
    """`sound.h`: samples and probabilities, as constants."""
    lines = [f"enum {{ CHUNKS = {CHUNKS}, CHUNK = {CHUNK}, CONTEXT = {CONTEXT} }};"]
    lines += ["static const int16_t sound[CHUNKS][CHUNK] = {"]
    lines += [f"    {{{', '.join(map(str, row))}}}," for row in sound.reshape(CHUNKS, CHUNK)]
    lines += ["};", "static const float expected[CHUNKS] = {"]
    lines += [f"    {value:.9g}f," for value in expected]
    path.write_text("\n".join([*lines, "};"]) + "\n", encoding="utf-8")


def main() -> None:
    """Writes both files."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    packaged = Path(silero_vad.__file__).parent / "data" / "silero_vad_openvino_16k.onnx"
    model = shutil.copy(packaged, folder / "vad.onnx")
    sound = record()
    expected = probabilities(model, sound)
    print(f"{sum(value > 0.5 for value in expected)} of {CHUNKS} times there is speech")
    write_sound(folder / "sound.h", sound, expected)


if __name__ == "__main__":
    main()
