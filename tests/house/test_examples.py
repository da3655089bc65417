"""What the front page and the examples show runs, and checks itself."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WIDE = os.environ | {"COLUMNS": "120"}
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_short_and_its_own_checks_hold(path):
    text = path.read_text()
    assert len(text.splitlines()) < 80
    assert "assert " in text
    subprocess.run([sys.executable, str(path)], check=True, capture_output=True, timeout=120)


def test_python_of_the_front_page_runs():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    subprocess.run([sys.executable, "-c", "\n".join(blocks)], check=True, capture_output=True, timeout=120)


def test_builder_of_the_model_page_runs():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/model.md").read_text(), re.DOTALL)
    building = [block for block in blocks if "ModelBuilder" in block]
    assert building
    subprocess.run([sys.executable, "-c", "import delassus as dl\n" + "\n".join(building)], check=True, capture_output=True, timeout=120)


def test_commands_print_tables_and_write_json(tmp_path):
    command = [sys.executable, "-c", "from delassus.cli import main; main()"]
    shown = subprocess.run(
        [*command, "info", "cassie", "--json", "info.json"], check=True, capture_output=True, text=True, cwd=tmp_path, env=WIDE
    ).stdout
    assert "left-achilles-rod" in shown
    assert '"nv": 32' in (tmp_path / "info.json").read_text()
    shown = subprocess.run(
        [*command, "info", "cassie-standing-friction", "--json", "scene.json"],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=WIDE,
    ).stdout
    assert "30 constraints, 50 rows" in shown
    assert re.search(r"JointFriction +22 +26 +box", shown)
    assert "4 of constraints, 12 arise" in shown
    assert "an explicit G never pays" in shown
    told = json.loads((tmp_path / "scene.json").read_text())
    assert (told["operator"]["given"], told["operator"]["break_even"]) == (4, None)
    assert told["operator"]["solve"]["multiply_adds"] > told["operator"]["product"]["multiply_adds"] > 0
    assert (told["scene"], told["nv"], told["contacts"], told["rows"]) == ("cassie-standing-friction", 32, 4, 50)
    subprocess.run([*command, "check", "iiwa", "--states", "3", "--json", "check.json"], check=True, capture_output=True, cwd=tmp_path)
    assert '"passed": true' in (tmp_path / "check.json").read_text()
    failed = subprocess.run([*command, "info", "nobody"], capture_output=True, text=True, cwd=tmp_path)
    assert failed.returncode == 2
    assert "UnknownNameError" in failed.stderr
    assert "pyramid-with-robots" in failed.stderr
    assert "Traceback" not in failed.stderr
    for words in (["info", "[/x].xml"], ["info", "cassie", "--json", "no/such/folder.json"], ["demo", "--folder", "no/such/folder"]):
        failed = subprocess.run([*command, *words], capture_output=True, text=True, cwd=tmp_path)
        assert failed.returncode == 2
        assert "Traceback" not in failed.stderr


def test_demo_checks_every_robot_and_draws(tmp_path):
    command = [sys.executable, "-c", "from delassus.cli import main; main()", "demo", "--json", "demo.json"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path, timeout=120).stdout
    assert "atlas_hands" in (tmp_path / "demo.json").read_text()
    assert "energy kept" in shown
    assert (tmp_path / "delassus_demo.png").stat().st_size > 20_000
