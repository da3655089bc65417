"""What a study costs: a row on a core, a row on disk, a chunk for the client and its scheduler; and from these what 10⁶ and 10⁹ runs take.

python benchmarks/python/studies.py [--rows N] [--chunks N] [--engines threads,processes,dask,ray] [--json FILE]

Times are CPU time, the least of some repeats, so that a busy machine shows less: of one worker for rows, of the client's process (in which Dask's scheduler runs here) for chunks.
"""

import argparse
import json
import pickle
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import delassus as dl
from delassus.studies import work
from delassus.studies.columns import write_column
from delassus.studies.dataset import Dataset
from delassus.studies.engine import CHUNK_SECONDS, worker_count
from delassus.studies.job import packed
from delassus.studies.rows import Runner

BOX = """<mujoco model="box"><option timestep="0.002"/><worldbody><geom type="plane" size="5 5 1"/>
<body pos="0 0 0.12"><freejoint/><geom name="box" type="box" size=".1 .1 .1" mass="1"/></body></worldbody></mujoco>"""
VARIED = {"friction": (0.4, 1.0), "mass_scale": (0.8, 1.2), "v[0]": (-1.0, 1.0)}
STUDIES = {
    "box, 100 steps": lambda rows: dl.Study(BOX, parameters=dl.studies.random(rows, VARIED), metrics=["height", "distance"], seconds=0.2),
    "go2, 250 steps": lambda rows: dl.Study(
        dl.scenes.on_floor("go2"), initial="home", parameters=dl.studies.random(rows, VARIED), metrics=["height", "max_contact_force"], seconds=0.5, timestep=2e-3
    ),
}  # fmt: skip


def best(call, repeats=5):
    """CPU seconds of a call, the least of some; and what it returned."""
    found = []
    for _ in range(repeats):
        began = time.process_time()
        result = call()
        found.append(time.process_time() - began)
    return min(found), result


def row_costs(make, rows):
    """CPU seconds of a row on one core, and of its steps alone; bytes of a row there and back, and of the job."""
    study = make(rows)
    job, runner = study._job, Runner(study._job)
    columns = study.columns()
    runner.run(0, 32, {name: column[:32] for name, column in columns.items()}, bool)  # worlds are made
    spent, answer = best(lambda: runner.run(0, rows, columns, bool))
    worlds = dl.Worlds(study.model, 32, **study.options)

    def steps():
        for start in range(0, rows, 32):
            worlds.reset(q=job.keyframe)
            worlds.parameters.clear()
            for name, target in job.targets.items():
                write_column(target, columns[name][start : start + 32], {"v": worlds.v} if target.array == "v" else worlds.parameters)
            worlds.step(job.steps)

    stepping, _ = best(steps)
    statuses = study.run(path=None, progress=False).counts()
    sent = len(work.message("0" * 64, None, 0, rows, columns, 1)) + len(pickle.dumps({"columns": answer, "seconds": 1.0}))
    return {
        "seconds": spent / rows, "stepping": stepping / rows, "wire": sent / rows, "job": len(packed(job)), "statuses": statuses,
        "steps": job.steps,
    }  # fmt: skip


@contextmanager
def engine(name):
    """Two workers of an engine."""
    if name == "threads":
        with ThreadPoolExecutor(2) as pool:
            yield pool
    elif name == "processes":
        with ProcessPoolExecutor(2) as pool:
            yield pool
    elif name == "dask":
        from distributed import Client, LocalCluster

        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
            yield client.get_executor()
    else:
        import ray

        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        yield dl.studies.RayExecutor()
        ray.shutdown()


def chunk_cost(name, chunks):
    """CPU and wall seconds of the client for a chunk that has nothing to do."""
    study = dl.Study(BOX, parameters=dl.studies.random(chunks, VARIED), metrics=["height"], seconds=0.0)
    with engine(name) as executor:
        warm = dl.Study(BOX, parameters=dl.studies.random(50, VARIED), metrics=["height"], seconds=0.0)
        warm.run(executor, path=None, progress=False, chunk=1)
        assert worker_count(executor) == 2
        began = time.perf_counter()
        cpu, _ = best(lambda: study.run(executor, path=None, progress=False, chunk=1), 3)
        return {"cpu": cpu / chunks, "wall": (time.perf_counter() - began) / 3 / chunks}


def writing_cost(rows=200_000):
    """CPU seconds of the client for a row, its values, the table and the part on disk; and bytes of a row in a part of many."""
    study = dl.Study(BOX, parameters=dl.studies.latin_hypercube(rows, VARIED), metrics=["height", "distance"], seconds=0.0)
    rng = np.random.default_rng(0)
    status, zeros = np.full(1000, "solved"), np.zeros(1000, dtype=int)
    found = [
        {"height": rng.random(1000), "distance": rng.random(1000), "status": status, "unsolved": zeros, "unstable": zeros - 1}
        for _ in range(rows // 1000)
    ]
    with tempfile.TemporaryDirectory() as folder:

        def write():
            dataset = Dataset(Path(folder) / str(time.monotonic_ns()), study.identity, rows)
            with dataset.opened(resume=False):
                dataset.write(
                    [((1000 * k, 1000 * k + 1000), study._table(1000 * k, 1000 * k + 1000, part)) for k, part in enumerate(found)]
                )
            return sum(p.stat().st_size for p in dataset.parts())

        seconds, size = best(write)
        return {"seconds": seconds / rows, "bytes": size / rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=320)
    parser.add_argument("--chunks", type=int, default=300)
    parser.add_argument("--engines", default="threads,processes,dask,ray")
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = {name: row_costs(make, options.rows) for name, make in STUDIES.items()}
    chunks = {}
    for name in options.engines.split(","):
        try:
            chunks[name] = chunk_cost(name, options.chunks)
        except ImportError as error:
            print(f"{name}: {error}")
    writing = writing_cost()

    print("| study | CPU ms a row | of it steps | rows per second and core | bytes a row sent | job, kB | statuses |")
    print("|---|---|---|---|---|---|---|")
    for name, r in rows.items():
        words = ", ".join(f"{n} {word}" for word, n in r["statuses"].items())
        print(
            f"| {name} | {1e3 * r['seconds']:.2f} | {r['stepping'] / r['seconds']:.0%} | {1 / r['seconds']:.0f} | {r['wire']:.0f} | {r['job'] / 1e3:.0f} | {words} |"
        )
    print(
        f"\nThe client: {1e6 * writing['seconds']:.2f} µs a row (three parameters, two metrics) to make its values, its table and its part: "
        f"{1 / writing['seconds']:,.0f} rows per second at most; {writing['bytes']:.0f} bytes a row on disk.\n"
    )
    print(
        f"| engine | client's CPU a chunk, ms | wall a chunk, ms | chunks per second at most | cores that chunks of {CHUNK_SECONDS:g} s keep busy |"
    )
    print("|---|---|---|---|---|")
    for name, c in chunks.items():
        print(f"| {name} | {1e3 * c['cpu']:.2f} | {1e3 * c['wall']:.2f} | {1 / c['cpu']:.0f} | {CHUNK_SECONDS / c['cpu']:.0f} |")
    print("\n| study | runs | core hours | on disk | client's CPU | chunks of 1 s |")
    print("|---|---|---|---|---|---|")
    slowest = max(c["cpu"] for c in chunks.values())
    for name, r in rows.items():
        for n in (10**6, 10**9):
            hours = n * r["seconds"] / 3600
            pieces = n * r["seconds"] / CHUNK_SECONDS
            client = (n * writing["seconds"] + pieces * slowest) / 3600
            print(f"| {name} | {n:.0e} | {hours:,.1f} | {n * writing['bytes'] / 1e9:,.2f} GB | {client:,.2f} h | {pieces:,.0f} |")
    if options.json:
        Path(options.json).write_text(json.dumps({"version": dl.__version__, "rows": rows, "chunks": chunks, "writing": writing}, indent=2))


if __name__ == "__main__":
    main()
