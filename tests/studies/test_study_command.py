"""`delassus study`: studies in files, where they run, what is printed and drawn."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import delassus as dl
from delassus.cli import app
from delassus.errors import ArgumentError, LoadError, UnknownNameError
from delassus.studies.file import executor_of, read_study

pytest.importorskip("pyarrow")

BOX = """<mujoco model="box"><option timestep="0.002"/><worldbody><geom name="floor" type="plane" size="5 5 1"/>
<body name="box" pos="0 0 0.12"><freejoint/><geom name="box" type="box" size=".1 .1 .1" mass="2"/></body></worldbody></mujoco>"""
STUDY = {
    "model": "box.xml", "design": "latin_hypercube", "rows": 30, "seed": 4, "seconds": 0.02, "metrics": ["height", "max_speed"],
    "parameters": {"v[0]": [0.5, 2.0], "q[2]": [0.1, 1.0, "log"]}, "options": {"timestep": 0.001},
}  # fmt: skip


@pytest.fixture
def desk(tmp_path, monkeypatch):
    (tmp_path / "box.xml").write_text(BOX)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def written(folder, content, name="s.json"):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def run(*words):
    said = CliRunner().invoke(app, ["study", *map(str, words)])
    if said.exception is not None and not isinstance(said.exception, SystemExit):
        raise said.exception
    return said


def by_hand():
    ranges = {"v[0]": (0.5, 2.0), "q[2]": (0.1, 1.0, "log")}
    return dl.Study(
        BOX,
        parameters=dl.studies.latin_hypercube(30, ranges, seed=4),
        metrics=["height", "max_speed"],
        seconds=0.02,
        seed=4,
        timestep=0.001,
    )


def test_a_file_is_the_study_that_it_describes(desk):
    study = read_study(written(desk, STUDY))
    assert study.identity == by_hand().identity


def test_toml_says_the_same(desk):
    pytest.importorskip("tomllib")
    toml = """model = "box.xml"
design = "latin_hypercube"
rows = 30
seed = 4
seconds = 0.02
metrics = ["height", "max_speed"]
[parameters]
"v[0]" = [0.5, 2.0]
"q[2]" = [0.1, 1.0, "log"]
[options]
timestep = 0.001
"""
    assert read_study(written(desk, toml, "s.toml")).identity == by_hand().identity


@pytest.mark.parametrize("on", ["threads", "processes:2"])
def test_the_command_runs_draws_and_tells(desk, on):
    said = run(written(desk, STUDY), "--on", on, "--plot", "p.png", "--json", "r.json")
    assert said.exit_code == 0, said.output
    result = by_hand().run(path="s.parquet", progress=False)  # reads what the command wrote
    facts = json.loads((desk / "r.json").read_text())
    heights = by_hand().run(path=None, progress=False).column("height")
    assert facts["columns"]["height"] == [heights.min(), np.median(heights), heights.max()]
    assert facts["statuses"] == {"solved": 30} == result.counts()
    for words in ("box: 30 runs of 0.02 s", "height", "30 solved", "wrote s.parquet", "wrote p.png"):
        assert words in said.output
    assert (desk / "p.png").read_bytes().startswith(b"\x89PNG")


def test_rows_and_path_in_place_of_those_of_the_file(desk):
    assert run(written(desk, STUDY), "--rows", 7, "--path", "other").exit_code == 0
    import pyarrow.parquet

    assert pyarrow.parquet.read_table("other").num_rows == 7
    assert not (desk / "s.parquet").exists()


def test_grids_and_tables(desk):
    grid = {"model": "box.xml", "seconds": 0.01, "parameters": {"v[0]": [1, 2], "v[1]": {"low": 0, "high": 1, "count": 3}}}
    columns = read_study(written(desk, grid)).columns()
    np.testing.assert_array_equal(columns["v[0]"], [1, 1, 1, 2, 2, 2])
    np.testing.assert_array_equal(columns["v[1]"], [0, 0.5, 1, 0, 0.5, 1])
    (desk / "t.csv").write_text('"v[0]","q[2]"\n1,0.5\n2,0.6\n')
    table = read_study(written(desk, {"model": "box.xml", "seconds": 0.01, "table": "t.csv"}))
    assert {name: column.tolist() for name, column in table.columns().items()} == {"v[0]": [1, 2], "q[2]": [0.5, 0.6]}
    assert read_study(written(desk, {"model": "iiwa", "seconds": 0.01})).rows == 1


def test_what_is_wrong_in_a_file_is_named(desk):
    base = {"model": "box.xml", "seconds": 0.01}
    for content, error, words in (
        ("{", LoadError, r"study: .*s\.json' is damaged"),
        ("[]", LoadError, "expected a table with 'model' and 'seconds'"),
        ({"model": "box.xml"}, LoadError, "none of seconds"),
        (base | {"parametrs": {}}, UnknownNameError, "Did you mean 'parameters'"),
        (base | {"design": "sobol"}, UnknownNameError, "random, latin_hypercube, grid"),
        (base | {"design": "random"}, LoadError, "expected 'rows'"),
        (base | {"rows": 3}, ArgumentError, "a grid has as many rows"),
        (base | {"parameters": [1]}, LoadError, "parameters: expected a table, got list"),
        (base | {"parameters": {"v[0]": {"low": 1}}}, LoadError, "low, high and count"),
        (base | {"table": "t.csv"}, LoadError, r"t\.csv' cannot be read"),
        (base | {"table": "t.xls"}, LoadError, r"\.csv or \.parquet"),
        (base | {"table": "t.csv", "parameters": {"v[0]": [1]}}, ArgumentError, "got both"),
        (base | {"options": {"solver": "magic"}}, UnknownNameError, "solver 'magic'"),
    ):
        with pytest.raises(error, match=words):
            read_study(written(desk, content))
    with pytest.raises(LoadError, match=r"the file .* cannot be read: No such file"):
        read_study(desk / "none.toml")
    with pytest.raises(LoadError, match=r"ends in \.json or \.toml"):
        read_study(desk / "box.xml")


@pytest.mark.parametrize("place", ["thread", "processes:0", "processes:x", "dask:/x", "raylet", ""])
def test_places_that_do_not_exist_are_refused(place):
    with pytest.raises(ArgumentError, match="--on: expected threads"), executor_of(place):
        pass


@pytest.mark.exhaustive
def test_dask_from_the_command_line(desk):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", local_directory=str(desk)) as cluster:
        said = run(written(desk, STUDY), "--on", cluster.scheduler_address.replace("tcp://", "dask://"))
    assert said.exit_code == 0, said.output
    assert "30 solved" in said.output


def test_pictures_show_what_there_is(desk):
    result = by_hand().run(path=None, progress=False)
    figure = result.plot()
    assert len(figure.axes) == 4
    assert [ax.get_xlabel() for ax in figure.axes[2:]] == ["v[0]", "q[2]"]
    points = figure.axes[0].collections[0].get_offsets()
    np.testing.assert_array_equal(np.asarray(points), np.stack([result.column("v[0]"), result.column("height")], axis=1))
    alone = dl.Study(BOX, rows=3, initial=lambda row: [0, 0, 1 + row.number, 1, 0, 0, 0], metrics=["height"], seconds=0.01).run(
        path=None, progress=False
    )
    assert [ax.get_xlabel() for ax in alone.plot("a.svg").axes] == ["row"]
    with pytest.raises(ArgumentError, match="expected a metric that is one number"):
        dl.Study(BOX, metrics=["q"], seconds=0.01).run(path=None, progress=False).plot()
    with pytest.raises(ArgumentError, match=r"expected a picture such as \.png"):
        alone.plot("a.xyz")
