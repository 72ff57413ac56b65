"""Trains a small network on drawn digits: digits.onnx, and samples.h with digits it never saw.

python make_model.py [FOLDER]

A digit is an image of 8 by 8 grey pixels: a letter of a font of 5 by 7, moved about, in any
strength of ink, on noise. The network has 64 inputs, 24 hidden units and 10 probabilities.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

FONT = """
01110 00100 01110 01110 00010 11111 00110 11111 01110 01110
10001 01100 10001 10001 00110 10000 01000 00001 10001 10001
10011 00100 00001 00001 01010 11110 10000 00010 10001 10001
10101 00100 00010 00110 10010 00001 11110 00100 01110 01111
11001 00100 00100 00001 11111 00001 10001 01000 10001 00001
10001 00100 01000 10001 00010 10001 10001 01000 10001 00010
01110 01110 11111 01110 00010 01110 01110 01000 01110 01100
"""
LINES = FONT.strip().splitlines()
SHAPES = np.array([[[int(dot) for dot in word] for word in line.split()] for line in LINES])
HIDDEN, SAMPLES = 24, 40


def draw(random: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """`count` images as [count, 64] bytes, and what they show."""
    labels = random.integers(0, 10, count)
    images = random.normal(0, 0.15, (count, 8, 8))
    for image, label in zip(images, labels, strict=True):
        y, x = random.integers(0, 2), random.integers(0, 4)
        image[y : y + 7, x : x + 5] += SHAPES[:, label] * random.uniform(0.6, 1.0)
    return (images.reshape(count, 64).clip(0, 1) * 255).astype(np.uint8), labels


def train(random: np.random.Generator) -> list[np.ndarray]:
    """Weights and biases of two layers, by gradient descent on cross entropy."""
    w1, b1 = random.normal(0, 0.2, (64, HIDDEN)), np.zeros(HIDDEN)
    w2, b2 = random.normal(0, 0.2, (HIDDEN, 10)), np.zeros(10)
    for step in range(3000):
        pixels, labels = draw(random, 64)
        x = pixels / 255
        hidden = np.maximum(x @ w1 + b1, 0)
        scores = hidden @ w2 + b2
        error = np.exp(scores - scores.max(1, keepdims=True))
        error /= error.sum(1, keepdims=True)
        error[np.arange(64), labels] -= 1
        back = error @ w2.T * (hidden > 0)
        rate = 0.3 / 64 * (1 - step / 3000)
        w2 -= rate * hidden.T @ error
        b2 -= rate * error.sum(0)
        w1 -= rate * x.T @ back
        b1 -= rate * back.sum(0)
    return [each.astype(np.float32) for each in (w1, b1, w2, b2)]


def write_model(path: Path, weights: list[np.ndarray]) -> None:
    """The network as an ONNX file."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
    digits (float[1, 64] pixels) => (float[1, 10] probabilities) {
        a = Gemm(pixels, w1, b1)
        hidden = Relu(a)
        scores = Gemm(hidden, w2, b2)
        probabilities = Softmax(scores)
    }""")
    for name, value in zip(("w1", "b1", "w2", "b2"), weights, strict=True):
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    onnx.save(model, path)


def write_samples(path: Path, images: np.ndarray, labels: np.ndarray) -> None:
    """`samples.h`: images and what they show, as constants."""
    lines = [f"enum {{ SAMPLES = {len(images)} }};"]
    lines += ["static const unsigned char images[SAMPLES][64] = {"]
    lines += [f"    {{{', '.join(map(str, image))}}}," for image in images]
    lines += ["};", f"static const unsigned char labels[] = {{{', '.join(map(str, labels))}}};"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Writes both files."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    random = np.random.default_rng(1)
    w1, b1, w2, b2 = weights = train(random)
    images, labels = draw(random, 1000)
    found = (np.maximum(images / 255 @ w1 + b1, 0) @ w2 + b2).argmax(1)
    print(f"{(found == labels).mean():.1%} of new digits are told right")
    write_model(folder / "digits.onnx", weights)
    write_samples(folder / "samples.h", images[:SAMPLES], labels[:SAMPLES])


if __name__ == "__main__":
    main()
