"""`python -m tools.conformance.worker FORM`: runs the cases whose names come on standard input.

Answers each with a line of JSON, an `Outcome`; what a case prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from dataclasses import asdict

from tools.conformance import guard
from tools.conformance.forms import forms
from tools.conformance.suite import Suite


def main(argv: list[str] | None = None) -> int:
    """See the module's text."""
    (name,) = argv or sys.argv[1:]
    warnings.filterwarnings("ignore")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    form = forms()[name]
    suite = Suite(form.backend())
    if form.native:
        guard.install()
    for line in sys.stdin:
        print(json.dumps(asdict(suite.run(line.strip()))), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
