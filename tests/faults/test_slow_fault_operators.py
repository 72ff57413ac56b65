"""Every operator that takes them, compiled and run on inputs that hold nothing, or one number."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.faults.operators import INPUTS, known

PARTS = 4
KINDS = ("scalars", "nothing", "no rows", "numbers")
PROGRAM = """
import sys
from cuvil.errors import Error, InternalError
from tests.faults.operators import INPUTS, known, model, required
for op in known()[int(sys.argv[1])::PARTS]:
    for count in {op.required, op.named}:
        values = [INPUTS[sys.argv[2]](k) for k in range(count)]
        try:
            m = model(op, "fixed", values, required(op))
            m.engine(opt_level=1).run(None, m.feeds)
        except InternalError as error:
            print(f"{op.name}: {error}")
        except (Error, MemoryError):
            pass
print("to the end")
"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", range(PARTS))
def test_b26_every_operator_in_native_code(part: int, kind: str) -> None:
    """An error or an answer, in a process of its own: a trap would end it."""
    assert kind in INPUTS and known()
    program = PROGRAM.replace("PARTS", str(PARTS))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program, str(part), kind],
                          capture_output=True, text=True, timeout=600)  # fmt: skip
    assert done.stdout == "to the end\n", (done.returncode, done.stdout, done.stderr[-500:])
