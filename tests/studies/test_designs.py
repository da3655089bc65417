"""Tables of runs: grids are products, samples depend on seed, name and row only, Latin hypercubes have one value in each part; what is wrong is named."""

import itertools

import numpy as np
import pytest
from scipy.stats import kstest

import delassus as dl
from delassus.errors import ArgumentError, ArgumentTypeError, NotFiniteError
from delassus.studies.designs import _permuted, as_design, joined

RANGES = {"a": (-2.0, 3.0), "b": (10.0, 20.0), "c": (1e-3, 1e2, "log")}


def whole(design):
    return design.columns(0, design.rows)


def pieces(design, *cuts):
    parts = [design.columns(a, b) for a, b in itertools.pairwise((0, *cuts, design.rows))]
    return {name: np.concatenate([part[name] for part in parts]) for name in design.names}


def test_a_grid_is_the_product_the_last_name_fastest():
    values = {"a": [1.0, 2.0], "b": [3.0, 4.0, 5.0], "c": [[0.0, 1.0], [2.0, 3.0]]}
    design = dl.studies.grid(values)
    wanted = list(itertools.product(*values.values()))
    assert design.rows == len(wanted) == 12
    for k, name in enumerate(values):
        np.testing.assert_array_equal(whole(design)[name], [row[k] for row in wanted])


@pytest.mark.parametrize("make", [dl.studies.random, dl.studies.latin_hypercube])
def test_samples_are_the_same_bits_in_any_pieces(make):
    design = make(1000, RANGES, seed=3)
    for cuts in ((1,), (3, 4, 5, 999), (250, 500, 750)):
        for name, column in pieces(design, *cuts).items():
            assert column.tobytes() == whole(design)[name].tobytes()


def test_random_values_depend_on_seed_name_and_row_only():
    few, more = dl.studies.random(100, {"a": (0, 1)}, seed=5), dl.studies.random(1000, {"z": (0, 1), "a": (0, 1)}, seed=5)
    np.testing.assert_array_equal(whole(few)["a"], whole(more)["a"][:100])
    other = dl.studies.random(100, {"a": (0, 1)}, seed=6)
    assert not np.intersect1d(whole(few)["a"], whole(other)["a"]).size
    assert not np.intersect1d(whole(more)["z"], whole(more)["a"]).size


@pytest.mark.parametrize("make", [dl.studies.random, dl.studies.latin_hypercube])
def test_samples_are_uniform_in_their_ranges_and_independent(make):
    columns = whole(make(4000, RANGES))
    shares = {
        "a": (columns["a"] + 2) / 5, "b": (columns["b"] - 10) / 10, "c": np.log(columns["c"] / 1e-3) / np.log(1e5)
    }  # fmt: skip
    for share in shares.values():
        assert kstest(share, "uniform").pvalue > 1e-3
    assert np.abs(np.corrcoef(list(shares.values())) - np.eye(3)).max() < 0.06
    neighbours = np.corrcoef(shares["a"][1:], shares["a"][:-1])[0, 1]
    assert abs(neighbours) < 0.06


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 16, 17, 1000])
def test_every_part_of_a_latin_hypercube_has_one_value(rows):
    columns = whole(dl.studies.latin_hypercube(rows, {"a": (0, 1), "b": (0, 1)}, seed=1))
    for column in columns.values():
        np.testing.assert_array_equal(np.sort((column * rows).astype(int)), np.arange(rows))
    if rows >= 16:
        assert not np.array_equal(np.argsort(columns["a"]), np.argsort(columns["b"]))
        assert not np.array_equal(np.argsort(columns["a"]), np.arange(rows))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 63, 64, 65, 1023, 4096, 5000])
def test_permutations_are_permutations(n):
    np.testing.assert_array_equal(np.sort(_permuted(np.arange(n), n, 12345)), np.arange(n))


def test_all_permutations_of_four_occur_about_equally_often():
    counts = {}
    for key in range(1200):
        order = tuple(_permuted(np.arange(4), 4, key).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 24
    assert min(counts.values()) > 20
    assert max(counts.values()) < 90


def test_rows_far_out_cost_nothing():
    design = dl.studies.latin_hypercube(10**12, RANGES)
    columns = design.columns(10**12 - 5, 10**12)
    assert all(len(column) == 5 for column in columns.values())
    assert dl.studies.grid({str(k): np.arange(10.0) for k in range(12)}).columns(10**12 - 1, 10**12)["0"] == [9.0]


def test_columns_may_be_of_a_mapping_a_table_or_a_frame():
    class Frame:
        columns = ("a", "b")

        def __getitem__(self, name):
            return {"a": [1, 2], "b": [3.0, 4.0]}[name]

    wanted = {"a": [1.0, 2.0], "b": [3.0, 4.0]}
    tables = [wanted, Frame(), {"a": np.array([1, 2]), "b": [3, 4]}]
    pa = pytest.importorskip("pyarrow")
    tables.append(pa.table(wanted))
    for table in tables:
        found = whole(as_design(table, "parameters"))
        assert {name: column.tolist() for name, column in found.items()} == wanted
    lists = pa.table({"g": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6.0)), 3)})
    np.testing.assert_array_equal(whole(as_design(lists, "parameters"))["g"], [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(whole(as_design({"a": [1, 2, 3], "b": 7}, "parameters"))["b"], [7, 7, 7])


def test_what_is_wrong_is_named():
    with pytest.raises(NotFiniteError, match=r"friction: .* in rows 1, 3"):
        as_design({"friction": [1, np.nan, 2, np.inf]}, "parameters")
    with pytest.raises(NotFiniteError, match=r"rows 0, 1, 2, 3, 4 and 5 more"):
        as_design({"friction": np.full((10, 2), np.nan)}, "parameters")
    with pytest.raises(ArgumentError, match="expected 2 rows in every column, got 3 in 'b'"):
        as_design({"a": [1, 2], "b": [1, 2, 3]}, "parameters")
    with pytest.raises(ArgumentTypeError, match="a: expected real numbers"):
        as_design({"a": ["x", "y"]}, "parameters")
    with pytest.raises(ArgumentTypeError, match="parameters: expected grid"):
        as_design(7, "parameters")
    with pytest.raises(ArgumentError, match="low ≤ high"):
        dl.studies.random(3, {"a": (2, 1)})
    with pytest.raises(ArgumentError, match="both positive"):
        dl.studies.random(3, {"a": (0, 1, "log")})
    with pytest.raises(ArgumentTypeError, match=r"a: expected \(low, high\)"):
        dl.studies.latin_hypercube(3, {"a": 2})
    with pytest.raises(ArgumentError, match="rows: expected at least 1"):
        dl.studies.random(0, {"a": (0, 1)})
    with pytest.raises(ArgumentError, match="none of a"):
        dl.studies.grid({"a": []})
    with pytest.raises(ArgumentError, match="a: given twice"):
        joined(as_design({"a": [1]}, "p"), as_design({"a": [2]}, "p"))
