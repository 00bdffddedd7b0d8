"""The notebook of the docs, run from beginning to end."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[3] / "docs" / "notebooks" / "first.ipynb"


def test_the_first_notebook_runs(tmp_path: Path) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("<svg" in output.get("data", {}).get("text/html", "") for output in outputs), "no chart is shown"
    assert any("cases in" in output.get("data", {}).get("text/html", "") for output in outputs), "no sweep is shown"
    assert not [output for output in outputs if output.output_type == "error"]
