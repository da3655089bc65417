"""Work in the core and the process around it: Ctrl-C ends it soon, and the interpreter may end while it goes on."""

import signal
import subprocess
import sys
import time

import pytest

BEGIN = """
import signal, sys, threading, time
import numpy as np
import delassus as dl
from delassus.errors import DelassusError

# what a shell started in the background ignores, this process does not
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(7)


def simulate():
    sim.run(1e5, every=100, progress=False)


def roll(threads):
    dl.rollout(sim, np.tile(sim.q, (16, 1)), steps=80_000, threads=threads)


def contacts(method):
    # so ill-conditioned that it takes thousands of iterations, 20 s and more
    A = rng.standard_normal((1500, 1500)) * np.logspace(0, -5, 1500)
    dl.solve_contacts(A @ A.T, rng.standard_normal(1500), [0.7] * 500, method=method, tolerance=0.0, max_iterations=10**6)


def dense(method):
    # one factorization takes a second
    A = rng.standard_normal((3600, 30))
    while True:
        dl.solve_contacts(A @ A.T + np.eye(3600), rng.standard_normal(3600), [0.7] * 1200, method=method, tolerance=0.0)


def lcp():
    # thousands of pivots of a large tableau
    A = rng.standard_normal((4000, 60))
    dl.solve_lcp(A @ A.T + np.eye(4000), rng.standard_normal(4000))


def dynamics(method):
    model = dl.load("g1")
    held = [dl.Weld(model, name) for name in model.body_names[-3:]]
    v = rng.standard_normal(model.nv)
    while True:
        dl.constrained_dynamics(model, model.neutral(), v, None, held, method=method, tolerance=1e-300, max_iterations=2_000_000, mu=1e-3)


def many_dynamics():
    model, n = dl.load("g1"), 2000
    held = [dl.Weld(model, name) for name in model.body_names[-3:]]
    solver = dl.BatchConstrainedDynamics(model, held, n, threads=2, tolerance=1e-300, max_iterations=20_000, mu=1e-3)
    q, v = np.tile(model.neutral(), (n, 1)), rng.standard_normal((n, model.nv))
    for _ in range(100):
        solver.solve(q, v)


def assembly():
    model = dl.load("cassie")
    while True:
        dl.close_loops(model, model.random(rng))


sim = dl.Simulator(dl.scenes.box_stack(5))
"""

INTERRUPTED = """
print("ready", flush=True)
before = sim.time
try:
    {work}
except KeyboardInterrupt:
    # what was interrupted can be used again
    step = sim.step()
    assert step.status == "solved" and abs(sim.time - round(sim.time, 3)) < 1e-9, (step.status, sim.time)
    sys.exit(0)
sys.exit("it came to its end by itself")
"""

WORK = {
    "run": "simulate()", "rollout": "roll(1)", "rollout on two threads": "roll(2)", "pgs": "contacts('pgs')", "apgd": "contacts('apgd')", "lcp": "lcp()",
    "admm with a large matrix": "dense('admm')", "interior points with a large matrix": "dense('interior')",
    "lcaba": "dynamics('lcaba')", "prox-ltls": "dynamics('prox-ltls')", "a batch on two threads": "many_dynamics()", "close_loops": "assembly()",
}  # fmt: skip


@pytest.mark.parametrize("name", WORK)
def test_ctrl_c_ends_work_in_the_core(name):
    child = subprocess.Popen([sys.executable, "-c", BEGIN + INTERRUPTED.format(work=WORK[name])], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(1.0)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=20)  # far beyond the second that is promised, and far below what the work would take
    finally:
        child.kill()
    assert child.returncode == 0


LEAVING = """
class Late:
    def __del__(self):
        # the interpreter is ending: whoever asks for its lock now is told to go
        time.sleep(0.3)


sys.late = Late()
threading.Thread(target=lambda: [{work} for _ in range(10**9)], daemon=True).start()
time.sleep(0.5)
"""

QUICK = {
    "a simulation": "sim.run(0.02, progress=False)", "a rollout on threads": "dl.rollout(sim, np.tile(sim.q, (2, 1)), steps=20, threads=2)",
    "products": "dl.mass_matrix(sim.model, sim.q)", "contact forces": "dl.solve_contacts(np.eye(30), np.ones(30), [1.0] * 10, method='pgs')",
}  # fmt: skip


@pytest.mark.parametrize("name", QUICK)
def test_a_daemon_thread_in_the_core_does_not_abort_the_interpreter_at_its_end(name):
    ended = subprocess.run([sys.executable, "-c", BEGIN + LEAVING.format(work=QUICK[name])], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
