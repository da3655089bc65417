"""The table is the same bit for bit on any executor, chunking and number of workers; lost workers cost their chunk; what cannot go on is a typed error that names rows."""

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentTypeError, FunctionError, MissingExtraError, WorkerError
from delassus.studies import work
from delassus.studies.engine import worker_count

parquet = pytest.importorskip("pyarrow.parquet")

BOX = """<mujoco model="box"><option timestep="0.002"/><worldbody><geom name="floor" type="plane" size="5 5 1"/>
<body name="box" pos="0 0 0.12"><freejoint/><geom name="box" type="box" size=".1 .1 .1" mass="2"/></body></worldbody></mujoco>"""
ROWS = 120


def study(rows=ROWS, **given):
    ranges = {"friction": (0.1, 1.0), "mass_scale": (0.5, 2.0), "v[0]": (-1.0, 1.0), "v[4]": (-5.0, 5.0), "q[2]": (0.1, 0.4)}
    options = {"metrics": ["height", "distance", "max_contact_force", "q"], "seconds": 0.05} | given
    return dl.Study(BOX, parameters=dl.studies.latin_hypercube(rows, ranges, seed=2), **options)


@pytest.fixture(scope="module")
def threads():
    """The table of the threads of this process."""
    return study().run(path=None, progress=False).table


def processes(n, start="fork"):
    return ProcessPoolExecutor(n, mp_context=multiprocessing.get_context(start))


def same_bits(one, other):
    """Tables that agree in names, types and the bits of every number."""
    return one.equals(other) and all(
        np.array_equal(np.asarray(a.flatten()).view(np.int64), np.asarray(b.flatten()).view(np.int64))
        for a, b in zip(one.columns, other.columns, strict=True)
        if str(a.type) == "double"
    )


@pytest.mark.parametrize("chunk", [1, 7, 33, ROWS, 10**6])
def test_chunks_do_not_matter(threads, chunk):
    assert same_bits(study().run(path=None, progress=False, chunk=chunk).table, threads)


@pytest.mark.parametrize(("n", "start"), [(1, "fork"), (2, "spawn"), (3, "fork")])
def test_processes_give_the_same_table(threads, n, start):
    with processes(n, start) as pool:
        assert same_bits(study().run(pool, path=None, progress=False, chunk=11).table, threads)


class Backwards(Executor):
    """Runs calls when eight are waiting, the last one first, as another process would get them."""

    workers = 8

    def __init__(self):
        self.waiting, self.sizes = [], []

    def submit(self, fn, /, *args):
        future = Future()
        self.sizes.append(len(pickle.dumps(args)))
        self.waiting.append((future, fn, args))
        if len(self.waiting) == 8:
            for waiting, call, given in reversed(self.waiting):
                waiting.set_result(call(*given))
            self.waiting = []
        return future


def test_the_model_travels_once_and_order_does_not_matter(threads):
    work._held.clear()
    executor = Backwards()
    result = study().run(executor, path=None, progress=False, chunk=5)
    assert same_bits(result.table, threads)
    blob = len(pickle.dumps(study()._job.model))
    # the sixteen calls that are out at first ask for the job, since none had it; none of the later ones does
    assert len(executor.sizes) == 16 + ROWS // 5
    assert sum(size > blob for size in executor.sizes) == 16
    assert min(executor.sizes) < 2000 < blob
    work._held.clear()


def test_workers_are_counted():
    assert worker_count(ThreadPoolExecutor(5)) == 5
    assert worker_count(Backwards()) == 8
    assert worker_count(object()) == os.cpu_count()


# ---- lost workers ---------------------------------------------------------------------------------------------------------------


def killer(row, flag=None):
    """A metric that kills its process in a row: where a flag is given, only while there is no such file."""

    def metric(run):
        if run.row == row and (flag is None or not os.path.exists(flag)):
            if flag is not None:
                open(flag, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return float(run.row)

    return metric


def test_a_lost_worker_costs_its_chunk_which_is_run_again(threads, tmp_path):
    with processes(2) as pool:
        given = study(metrics={"height": "height", "number": killer(57, str(tmp_path / "flag"))})
        result = given.run(pool, path=tmp_path / "s", progress=False, chunk=6)
    np.testing.assert_array_equal(result.column("number"), np.arange(ROWS))
    assert result.column("height").tobytes() == np.asarray(threads.column("height")).tobytes()
    assert (tmp_path / "flag").exists()


def test_a_row_that_kills_every_worker_is_named_and_all_others_are_kept(tmp_path):
    with processes(2) as pool, pytest.raises(WorkerError, match="rows 30 to 30: their worker was lost 4 times"):
        study(40, metrics={"number": killer(30)}).run(pool, path=tmp_path / "s", progress=False, chunk=1)
    rows = sorted(parquet.read_table(tmp_path / "s").column("row").to_pylist())
    assert rows == [k for k in range(40) if k != 30]


class Forgetful(ThreadPoolExecutor):
    """Loses every other chunk when it is first sent: calls it off, or says that a worker is gone."""

    def __init__(self, error=None):
        super().__init__(2)
        self.error, self.lost = error, set()

    def submit(self, fn, /, *args):
        first = pickle.loads(args[0])["first"]
        if first % 8 or first in self.lost:
            return super().submit(fn, *args)
        self.lost.add(first)
        future = Future()
        if self.error is None:
            future.cancel()
            future.set_running_or_notify_cancel()
        else:
            future.set_exception(self.error)
        return future


@pytest.mark.parametrize("error", [None, OSError("connection lost"), BrokenExecutor("gone")])
def test_calls_that_are_lost_are_made_again(threads, error):
    with Forgetful(error) as executor:
        assert same_bits(study().run(executor, path=None, progress=False, chunk=4).table, threads)
        assert len(executor.lost) == ROWS // 8


class Dying(ThreadPoolExecutor):
    def submit(self, fn, /, *args):
        self.calls = getattr(self, "calls", 0) + 1
        if self.calls > 10:
            raise RuntimeError("the cluster is gone")
        return super().submit(fn, *args)


def test_an_executor_that_dies_names_the_rows_and_keeps_what_is_finished(threads, tmp_path):
    with (
        Dying(1) as executor,
        pytest.raises(WorkerError, match=r"rows \d+ to \d+: the executor takes no more work: RuntimeError: the cluster is gone"),
    ):
        study().run(executor, path=tmp_path / "s", progress=False, chunk=4)
    assert 4 <= parquet.read_table(tmp_path / "s").num_rows <= 40
    assert same_bits(study().run(path=tmp_path / "s", progress=False).table, threads)


def test_a_pool_that_was_shut_down_is_refused():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(WorkerError, match="takes no more work"):
        study().run(pool, path=None, progress=False)
    with pytest.raises(ArgumentTypeError, match=r"executor: expected the interface of concurrent\.futures\.Executor, got int"):
        study().run(4, path=None, progress=False)


# ---- workers that cannot do it --------------------------------------------------------------------------------------------------


def test_a_worker_with_another_version_says_so(monkeypatch):
    sent = work.message("key", None, 40, 50, {}, 1)
    real = work.versions()
    monkeypatch.setattr(work, "versions", lambda: {**real, "delassus": "0.0.7"})
    answer = pickle.loads(work.run_chunk(sent))
    assert isinstance(answer["error"], WorkerError)
    assert f"rows 40 to 49: a worker has delassus 0.0.7 and not {dl.__version__}" in str(answer["error"])


def test_a_worker_of_another_version_ends_the_study():
    real = work.versions()

    class Old(ThreadPoolExecutor):
        def submit(self, fn, /, *args):
            asked = pickle.loads(args[0])
            asked["versions"]["mujoco"] = "2.0"
            return super().submit(fn, pickle.dumps(asked))

    with Old(1) as executor, pytest.raises(WorkerError, match=f"a worker has mujoco {real['mujoco']} and not 2.0"):
        study().run(executor, path=None, progress=False)


def test_a_worker_without_the_package_says_so():
    class Bare(ThreadPoolExecutor):
        def submit(self, fn, /, *args):
            future = Future()
            future.set_exception(RuntimeError("cannot unpickle"))
            future.exception().__cause__ = ModuleNotFoundError("No module named 'delassus'")
            return future

    with Bare(1) as executor, pytest.raises(WorkerError, match="rows 0 to 7: a worker does not have this version of delassus"):
        study().run(executor, path=None, progress=False, chunk=8)


def test_functions_that_cannot_be_sent_are_refused_before_anything_runs():
    lock = threading.Lock()
    with processes(1) as pool, pytest.raises(ArgumentTypeError, match="cannot be sent to another process"):
        study(metrics={"f": lambda run: lock.locked()}).run(pool, path=None, progress=False)


def test_functions_that_a_worker_cannot_import_are_named():
    answer = pickle.loads(work.run_chunk(work.message("no such job", b"cnowhere\nnothing\n.", 0, 1, {}, 1)))
    assert isinstance(answer["error"], FunctionError)
    assert "a worker cannot import a function: ModuleNotFoundError: No module named 'nowhere'" in str(answer["error"])


def test_errors_of_functions_come_back_from_processes():
    with processes(1) as pool, pytest.raises(FunctionError, match="metrics: 'f' failed in row 3: ZeroDivisionError"):
        study(metrics={"f": lambda run: 1 / (run.row - 3)}).run(pool, path=None, progress=False)


# ---- clusters -------------------------------------------------------------------------------------------------------------------


@contextmanager
def dask_cluster(tmp_path):
    """An executor on two processes of Dask, and a function that gives their ids."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "local_directory": str(tmp_path)}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client.get_executor(), lambda: list(client.run(os.getpid).values())


@contextmanager
def ray_cluster(tmp_path):
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    executor = dl.studies.RayExecutor()
    try:
        yield executor, lambda: [executor.submit(os.getpid).result()]
    finally:
        ray.shutdown()


@pytest.mark.parametrize("cluster", [dask_cluster, pytest.param(ray_cluster, marks=pytest.mark.exhaustive)])
def test_a_cluster_gives_the_same_table_though_a_worker_is_killed(threads, tmp_path, cluster):
    given = study(metrics={"height": "height", "number": killer(57, str(tmp_path / "flag"))})
    with cluster(tmp_path) as (executor, _):
        result = given.run(executor, path=tmp_path / "s", progress=False, chunk=5)
    assert result.column("height").tobytes() == np.asarray(threads.column("height")).tobytes()
    np.testing.assert_array_equal(result.column("number"), np.arange(ROWS))
    assert (tmp_path / "flag").exists()


@pytest.mark.exhaustive
@pytest.mark.parametrize("cluster", [dask_cluster, ray_cluster])
def test_twenty_thousand_runs_though_a_worker_is_killed_in_the_middle(tmp_path, cluster):
    given = study(20_000, seconds=0.02)
    wanted = given.run(path=None, progress=False).table
    killed = []
    with cluster(tmp_path) as (executor, workers):

        def kill():
            # when a quarter is on disk
            while sum(parquet.read_metadata(p).num_rows for p in (tmp_path / "s").glob("part-*.parquet")) < 5000:
                time.sleep(0.05)
            killed.append(workers()[0])
            os.kill(killed[0], signal.SIGKILL)

        killing = threading.Thread(target=kill)
        killing.start()
        result = given.run(executor, path=tmp_path / "s", progress=False, chunk=100)
        killing.join()
    assert killed
    assert result.table.num_rows == 20_000
    assert same_bits(result.table, wanted)


def test_what_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"delassus\[ray\]"):
        dl.studies.RayExecutor()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"delassus\[studies\]"):
        study().run(path=None)
