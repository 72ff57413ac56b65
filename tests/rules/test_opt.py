"""`cuvil-opt`: text in, text out."""

from __future__ import annotations

from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from cuvil.cli.opt import run

BODY = """
  ^bb0(%x: !cuvil.tensor<[2, B], f32>):
    %0 = "cuvil.constant"() <{shape = array<i64>, dtype = "f32", floats = [1.0 : f64]}> \
: () -> !cuvil.tensor<[], f32>
    %1 = "cuvil.mul"(%0, %x) : (!cuvil.tensor<[], f32>, !cuvil.tensor<[2, B], f32>) \
-> !cuvil.tensor<[2, B], f32>
    %2 = "cuvil.sigmoid"(%1) : (!cuvil.tensor<[2, B], f32>) -> !cuvil.tensor<[2, B], f32>
    %3 = "cuvil.mul"(%2, %1) : (!cuvil.tensor<[2, B], f32>, !cuvil.tensor<[2, B], f32>) \
-> !cuvil.tensor<[2, B], f32>
    "cuvil.return"(%3) : (!cuvil.tensor<[2, B], f32>) -> ()
"""
AFTER = """
  ^bb0(%x: !cuvil.tensor<[2, B], f32>):
    %0 = "cuvil.silu"(%x) : (!cuvil.tensor<[2, B], f32>) -> !cuvil.tensor<[2, B], f32>
    "cuvil.return"(%0) : (!cuvil.tensor<[2, B], f32>) -> ()
"""


def module(body: str) -> str:
    head = '"cuvil.graph"() <{sym_name = "g", input_names = ["x"], output_names = ["y"]}> ({'
    return f'"builtin.module"() ({{\n  {head}{body}  }}) : () -> ()\n}}) : () -> ()\n'


def opt(*args: str, text: str = module(BODY)) -> Any:
    app = typer.Typer()
    app.command()(run)
    return CliRunner().invoke(app, list(args), input=text)


def test_all_phases() -> None:
    result = opt("--verify-each", "--stats")
    assert result.stdout == module(AFTER)
    assert result.stderr.split() == ["1", "constant_right", "1", "neutral_operand", "1", "silu"]


def test_one_phase_and_one_rule() -> None:
    assert "silu" not in opt("--phase", "canonicalize").stdout
    assert '"cuvil.mul"(%0, %x)' in opt("--rule", "silu").stdout
    assert "silu" in opt("--rule", "silu").stdout


def test_stop_after_and_print_after() -> None:
    result = opt("--stop-after", "2", "--print-after", "neutral_operand")
    assert result.stdout.startswith("// 2: neutral_operand at ")
    assert result.stdout.count('"cuvil.sigmoid"(%x)') == 2
    assert "// after fuse" in opt("--print-after", "fuse").stdout


def test_disabled_rules_and_groups() -> None:
    assert "silu" not in opt("--disable-rule", "silu").stdout
    assert "silu" not in opt("--pass", "memory_packing").stdout
    assert "silu" in opt("--pass", "fuse_norm_act").stdout


def test_list() -> None:
    lines = opt("--list").stdout.splitlines()
    assert any(line.split()[:2] == ["gelu", "x"] for line in lines)
    assert any(line.split() == ["transpose", "view"] for line in lines)


def test_constants_that_only_a_pool_has_are_left_alone() -> None:
    key = "0" * 40
    constant = f'"cuvil.constant"() <{{key = "{key}", shape = array<i64: 2, 1>, dtype = "f32"}}>'
    body = f"""
  ^bb0(%x: !cuvil.tensor<[2, B], f32>):
    %0 = {constant} : () -> !cuvil.tensor<[2, 1], f32>
    %1 = "cuvil.exp"(%0) : (!cuvil.tensor<[2, 1], f32>) -> !cuvil.tensor<[2, 1], f32>
    %2 = "cuvil.add"(%1, %x) : (!cuvil.tensor<[2, 1], f32>, !cuvil.tensor<[2, B], f32>) \
-> !cuvil.tensor<[2, B], f32>
    "cuvil.return"(%2) : (!cuvil.tensor<[2, B], f32>) -> ()
"""
    result = opt(text=module(body))
    assert result.exit_code == 0
    assert '"cuvil.exp"(%0)' in result.stdout


@pytest.mark.parametrize(
    ("args", "text", "message"),
    [
        (["--rule", "gelo"], module(BODY), "unknown rule 'gelo'; did you mean gelu"),
        (["--phase", "fusing"], module(BODY), "unknown phase 'fusing'; known: canonicalize"),
        ([], "nonsense", "-:1:9: "),
        ([], '"builtin.module"() ({\n^bb0:\n}) : () -> ()', "one cuvil.graph is expected"),
    ],
)
def test_mistakes_are_one_line_and_a_status(args: list[str], text: str, message: str) -> None:
    result = opt(*args, text=text)
    assert result.exit_code == 1
    assert result.stderr.startswith("cuvil-opt: ")
    assert message in result.stderr


def test_a_file_that_is_not_there() -> None:
    result = opt("/no/such/file.mlir")
    assert result.exit_code == 1
    assert "no/such/file.mlir" in result.stderr
