"""Tables and chart of the bench, from rows made by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tools.bench import publish
from tools.bench.chart import chart
from tools.bench.report import Report, digits, dynamic_line, markdown, mean, row_lines, summary
from tools.bench.suite import Row, Timed


def timed(median_ms: float, ratio: float | None = None) -> Timed:
    return Timed(median_ms, median_ms, 0.01, 20.0, f"settings {ratio}", ratio, 0.1)


@pytest.fixture
def report() -> Report:
    """Two models; ONNX Runtime ran both, OpenVINO refused one."""
    first = Row("first", engines={"cuvil": timed(10), "onnxruntime": timed(20, 2.0)})
    first.skipped["openvino"] = "openvino cannot run first.onnx: no\nmore"
    second = Row("second", engines={"cuvil": timed(4), "onnxruntime": timed(2, 0.5)})
    second.engines["openvino"] = timed(8, 2.0)
    for row in (first, second):
        row.gflop, row.peak_gflops = 0.5, 100.0
    free = Row("free", engines={"cuvil": timed(10), "fixed": timed(9, 0.9)})
    return Report("a machine", 1, [first, second, Row("third", problem="torch is missing")], [free])


def test_geometric_mean_over_models_that_both_ran(report: Report):
    assert mean(report.rows, "onnxruntime") == pytest.approx(1.0)
    assert mean(report.rows, "openvino") == pytest.approx(2.0)
    assert math.isnan(mean(report.rows, "torch"))
    assert "geometric mean 1.00x over 2 models, least 0.50x" in "\n".join(summary(report))


def test_lines_for_people(report: Report):
    text = "\n".join(line for row in report.rows for line in row_lines(row, report.peak_gflops))
    assert "50%" in text  # 0.5 GFLOP in 10 ms of 100 GFLOP/s
    assert "openvino cannot run first.onnx: no\n" in text
    assert "torch is missing" in text
    assert dynamic_line(report.dynamic[0]).endswith("0.90 of the fixed speed")


def test_the_table_of_the_readme(report: Report):
    lines = markdown(report).splitlines()
    assert lines[0] == (
        "| model | Cuvil, ms | ONNX Runtime, ms | OpenVINO, ms "
        "| of peak | first result, ms | memory | library |"
    )
    assert lines[2] == "| first | 10.0 | 20.0 (2.00x) | - | 50% | 20.0 | - | 0.0 MB |"
    assert lines[-1].startswith("| **geometric mean** |  | **1.00x** | **2.00x** |")


def test_three_digits():
    assert [digits(x) for x in (0.01464, 3.018, 92.61, 123.4)] == ["0.0146", "3.02", "92.6", "123"]


def test_the_chart_is_xml_with_a_bar_for_each_figure(report: Report):
    root = ElementTree.fromstring(chart(report))
    bars = [e for e in root.iter("{http://www.w3.org/2000/svg}rect") if len(e)]
    assert len(bars) == 3
    texts = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "OpenVINO: does not run" in texts and "2.00" in texts


def test_publishing_replaces_what_is_between_the_marks(report: Report, tmp_path: Path):
    readme = tmp_path / "README.md"
    marks = ("speed", "dynamic", "settings")
    readme.write_text("".join(f"<!-- {m} -->\nold\n<!-- /{m} -->\nkept\n" for m in marks))
    publish.publish(report, tmp_path)
    text = readme.read_text()
    assert "old" not in text and text.count("kept") == 3
    assert "| free | 10.0 | 9.00 | 0.90 |" in text and "- settings 2.0" in text
    assert (tmp_path / "docs" / "images" / "speed.svg").exists()
    publish.publish(report, tmp_path)
    assert readme.read_text() == text


def test_two_threads_have_a_table_of_their_own(report: Report, tmp_path: Path):
    readme = tmp_path / "README.md"
    readme.write_text("<!-- speed -->\nold\n<!-- /speed -->\n<!-- speed-2 -->\n<!-- /speed-2 -->\n")
    publish.publish(replace(report, threads=2), tmp_path)
    one, two = readme.read_text().split("<!-- /speed -->")
    assert "old" in one and "geometric mean" in two
    assert not (tmp_path / "docs").exists()


def test_a_readme_without_marks_is_refused():
    with pytest.raises(ValueError, match="<!-- speed -->"):
        publish.between("text", "speed", "new")


def test_a_report_survives_json(report: Report):
    assert Report.from_json(report.to_json()) == report
