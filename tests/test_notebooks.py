"""Every notebook runs from its first cell to its last."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_it_runs(file, tmp_path, monkeypatch):
    monkeypatch.setenv("NETLOOM_DATA", str(tmp_path))
    notebook = nbformat.read(file, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "notebooks are kept without outputs"
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": file.parent}}).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert any("image/png" in output.get("data", {}) for cell in code for output in cell.outputs)
