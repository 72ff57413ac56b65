"""`cuvil.Compiler`: ahead of time, from a model to files, in three calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Unpack

from cuvil.aot.write import Artefact, compile_to_folder, split_output
from cuvil.engine.api import checked_source, torch_door
from cuvil.engine.keywords import Keywords, options_with
from cuvil.engine.torch_models import is_torch
from cuvil.options import Options

Progress = Callable[[str], None]


class Compiler:
    """A model and how it is to be compiled.

    model = cuvil.Compiler.load("bert.onnx")
    model.optimize(target="cpu", passes=["fuse_norm_act"])
    model.compile(output_path="./libbert.so")
    """

    def __init__(self, source: Any, options: Options | None = None, spec: Any = None) -> None:
        self.source = source
        self.spec = spec
        self.options = options or Options()

    @classmethod
    def load(cls, model: Any, input_spec: Any = None) -> Compiler:
        """A compiler for the path of an ONNX file, the bytes of one, or a ModelProto, or for what
        of torch `cuvil.compile` takes, with input_spec as there.

        The file is read by `compile`, which raises ModelError or UnsupportedError.
        """
        return cls(model if is_torch(model) else checked_source(model), spec=input_spec)

    def optimize(self, **options: Unpack[Keywords]) -> Compiler:
        """Says what to compile for and how; what is None stays as it is. Returns itself.

        The options are those of `cuvil.compile`, see `engine.keywords.Keywords`. Raises
        OptionError.
        """
        self.options = options_with(self.options, options)
        return self

    def compile(
        self,
        output_path: str | os.PathLike[str],
        *,
        emit: Sequence[str] = (),
        name: str = "",
        weights: str = "",
        progress: Progress = lambda stage: None,
    ) -> Artefact:
        """Writes the compiled model: library, header, manifest, weights where they are apart.

        output_path: a folder, or a file in it whose name says what to write (`libX.so`, `libX.a`,
        `X.o`). emit: what to write instead, any of so, a, o, llvm, asm, mlir. name: prefix of
        every exported symbol, by default that of the file, then the model's.
        Raises CompileError, TargetError, OptionError and others of cuvil.Error.
        """
        folder, stem, kinds = split_output(output_path)
        options = replace(
            self.options,
            name=name or self.options.name or stem,
            weights=weights or self.options.weights,
        )
        source = self.source
        if is_torch(source):
            progress("export")
            source = torch_door().open_torch(source, self.spec, options.dynamic, options.name)[0]
        return compile_to_folder(
            source, folder, options, emit=tuple(emit) or kinds, progress=progress
        )
