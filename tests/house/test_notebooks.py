"""The notebooks run from their first cell to their last, show what a notebook shows, and hold outputs of themselves."""

import importlib.machinery
import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def tool():
    loader = importlib.machinery.SourceFileLoader("notebooks_tool", str(ROOT / "tools" / "notebooks"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["contact_and_loops", "first_steps", "learning_and_gradients"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_notebook_runs_and_holds_its_outputs(tool, path):
    kept, made = json.loads(path.read_text()), tool.run(path)  # cells end with assertions
    assert made["nbformat"] == 4
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])

    def kinds(notebook):
        return [
            [sorted(output.get("data", output.get("name", ""))) for output in cell["outputs"]]
            for cell in notebook["cells"]
            if cell["cell_type"] == "code"
        ]

    assert kinds(kept) == kinds(made)
    # Jupyter refuses a notebook whose data is not text
    for output in (output for cell in kept["cells"] for output in cell.get("outputs", ())):
        assert all(text and "".join(text) for text in output.get("data", {}).values())
    assert any("text/html" in output.get("data", {}) for cell in made["cells"] for output in cell.get("outputs", ()))


def test_a_cell_that_fails_is_an_error(tool):
    with pytest.raises(ZeroDivisionError):
        tool.run_cell("x = 1\nx / 0", {})
    assert tool.run_cell("x = 2\nprint(x)\nx + 1", {})[1]["data"]["text/plain"] == ["3"]
