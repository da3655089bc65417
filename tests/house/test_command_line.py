"""The command as users meet it: any terminal, any words, any folder; a mistake is one line and exit code 2, and files of others stay."""

import json
import os
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-c", "from delassus.cli import main; main()"]
COMMANDS = ["demo", "info", "doctor", "check", "count", "simulate", "bench", "reproduce", "study", "view", "play"]


def run(*words, cwd=None, **environment):
    return subprocess.run([*COMMAND, *words], capture_output=True, cwd=cwd, env=os.environ | environment, timeout=120)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_takes(command):
    said = run(command, "--help", COLUMNS="200")
    assert said.returncode == 0, said.stderr.decode()
    assert b"Usage" in said.stdout


def test_help_waits_for_no_numbers():
    """What costs time to import is left to the command that needs it: that keeps --help within 0.4 s."""
    code = "import sys; sys.argv = ['delassus', '--help']\nfrom delassus.cli import main\ntry: main()\nexcept SystemExit: pass\nprint(sorted({'numpy', 'scipy', 'mujoco', 'matplotlib', 'delassus._core'} & set(sys.modules)), file=sys.stderr)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert b"doctor" in said.stdout
    assert said.stderr.strip() == b"[]"


def test_the_module_is_the_command():
    said = subprocess.run([sys.executable, "-m", "delassus", "--version"], capture_output=True, timeout=60)
    assert said.stdout.startswith(b"delassus ")


def test_an_embedded_robot_cannot_be_told_to_float():
    for command in ("simulate", "info", "check", "view", "doctor", "bench"):
        said = run(command, "go2", "--floating-base")
        assert said.returncode == 2, command
        assert b"floating_base: only a URDF can get a floating base" in said.stderr
    assert run("simulate", "box-stack", "--floating-base").returncode == 2


URDF = """<robot name="r"><link name="body"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><mesh filename="package://my_robot/box.obj"/></geometry></collision></link></robot>"""
BOX = "\n".join(
    [
        *(f"v {x} {y} {z}" for x in (0, 1) for y in (0, 1) for z in (0, 1)),
        "f 1 2 4 3",
        "f 5 7 8 6",
        "f 1 5 6 2",
        "f 3 4 8 7",
        "f 1 3 7 5",
        "f 2 6 8 4",
    ]
)


def test_a_urdf_with_packages_is_examined_and_stands_on_a_floor(tmp_path):
    package, path = tmp_path / "packages" / "my_robot", tmp_path / "robot.urdf"
    package.mkdir(parents=True)
    (package / "box.obj").write_text(BOX)
    path.write_text(URDF)
    said = run("doctor", "robot.urdf", "--floating-base", "--json", "report.json", cwd=tmp_path)
    assert said.returncode == 1
    assert b"package 'my_robot' is not found" in said.stdout
    assert b"--package-dir" in said.stdout
    assert b"falls through any floor" in said.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert not report["complete"]
    assert {finding["kind"] for finding in report["findings"]} == {"read", "note", "missing"}
    said = run("doctor", "robot.urdf", "--package-dir", "packages", "--floating-base", cwd=tmp_path)
    assert said.returncode == 0, said.stderr.decode()
    assert b"1 mesh; meshes touch with their convex hulls" in said.stdout
    assert b"100 solved" in said.stdout
    said = run(
        "simulate",
        "robot.urdf",
        "--package-dir",
        "packages",
        "--floating-base",
        "--floor",
        "--seconds",
        "0.1",
        "--json",
        "a.json",
        cwd=tmp_path,
    )
    assert said.returncode == 0, said.stderr.decode()
    facts = json.loads((tmp_path / "a.json").read_text())
    assert facts["contacts"] >= 3
    assert facts["unsolved"] == 0
    assert facts["penetration"] < 1e-4


def test_steps_that_are_not_solved_are_explained(tmp_path):
    (tmp_path / "arm.xml").write_text(
        '<mujoco><worldbody><body><joint name="j" axis="0 1 0" range="20 40"/><geom size="0.1" pos="1 0 0"/></body></worldbody></mujoco>'
    )
    said = run("simulate", "arm.xml", "--seconds", "0.05", "--json", "a.json", cwd=tmp_path, COLUMNS="200")
    assert said.returncode == 0, said.stderr.decode()
    assert b"limit_violated (a joint was outside its range, and returns into it)" in said.stdout
    facts = json.loads((tmp_path / "a.json").read_text())
    assert facts["statuses"]["limit_violated"] == facts["unsolved"] > 0


def test_json_into_a_folder_is_refused_before_the_work(tmp_path):
    said = run("doctor", "go2", "--json", ".", cwd=tmp_path)
    assert (said.returncode, said.stdout) == (2, b"")
    assert b"--json: expected a file in an existing folder, got '.'" in said.stderr


def test_the_methods_are_measured_on_the_contacts_of_a_urdf_on_a_floor(tmp_path):
    package = tmp_path / "packages" / "my_robot"
    package.mkdir(parents=True)
    (package / "box.obj").write_text(BOX)
    (tmp_path / "robot.urdf").write_text(URDF)
    words = (
        "--floating-base",
        "--floor",
        "--package-dir",
        "packages",
        "--methods",
        "ltl",
        "--counting",
        "0",
        "--seconds",
        "0.1",
        "--json",
        "a.json",
    )
    said = run("bench", "robot.urdf", *words, cwd=tmp_path)
    assert said.returncode == 0, said.stderr.decode()
    assert json.loads((tmp_path / "a.json").read_text())["methods"]["rows"] == 12


def test_options_of_every_kind_are_taken(tmp_path):
    """Paths, lists, numbers, flags: what a version of typer must know."""
    words = [
        "simulate",
        "go2",
        "--seconds",
        "0.01",
        "--timestep",
        "0.002",
        "--control",
        ",".join(["0"] * 12),
        "--json",
        str(tmp_path / "a.json"),
    ]
    assert run(*words, "--record", str(tmp_path / "a.npz")).returncode == 0
    assert run("count", "efpa", "iiwa", "--weld", "link7").returncode in (0, 2)  # 2 where CasADi is not installed
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.json", "a.npz"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_that_cannot_show_every_character_is_served(encoding):
    said = run("info", "iiwa", PYTHONIOENCODING=encoding)
    assert (said.returncode, said.stderr) == (0, b"")
    assert b"link7" in said.stdout


@pytest.mark.parametrize(
    "words",
    [["info", b"\xff\xfe"], ["info", b"/tmp/\xff.xml"], ["view", b"/tmp/\xff.npz"], ["simulate", "iiwa", "--record", b"/no/\xff.npz"]],
)
def test_words_that_are_no_text_are_one_line(words):
    said = run(*words)
    assert said.returncode == 2
    assert b"Traceback" not in said.stderr
    assert len(said.stderr.splitlines()) == 1


def test_files_whose_names_are_no_text_are_written(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff.json"
    said = run("info", "iiwa", "--json", path)
    assert said.returncode == 0, said.stderr.decode()
    assert os.listdir(os.fsencode(tmp_path)) == [b"\xff.json"]


def test_reproducing_into_a_folder_of_somebody_else_leaves_its_readme(tmp_path):
    (tmp_path / "README.md").write_text("# Mine\n")
    said = run("reproduce", "--all", "--quick", "--out", str(tmp_path))
    assert said.returncode == 2
    assert b"is not one of ours" in said.stderr.replace(b"\n", b" ")
    assert [p.name for p in tmp_path.iterdir()] == ["README.md"]
    assert (tmp_path / "README.md").read_text() == "# Mine\n"


def test_commands_write_nothing_that_was_not_asked_for(tmp_path):
    for words in (["info", "go2"], ["check", "iiwa", "--states", "2"], ["simulate", "go2", "--seconds", "0.02"]):
        assert run(*words, cwd=tmp_path).returncode == 0
    assert list(tmp_path.iterdir()) == []
