"""Number of instructions executed by native work: by the processor's own counter, or by single steps.

The counter (perf_event_open) takes no time, but virtual machines often hide it and some systems forbid it. Single steps (ptrace) need no
counter: the kernel stops a child process after every instruction, some ten thousand per second. Both count the instructions executed, including all
that the processor supports; valgrind, for example, does not support AVX-512. Linux only.

The cost of Python in a call is subtracted: a count is the difference of two calls in which the core repeats the work a different number of times.
"""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from .motion import Progress, quiet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .verbs import Verb

__all__ = ["EventCounter", "count_by_counter", "count_by_steps"]

_SYSCALL = {"x86_64": 298, "aarch64": 241}  # of perf_event_open
_ENABLE, _DISABLE, _RESET = 0x2400, 0x2401, 0x2403  # ioctl requests of its file
_TRACEME, _CONTINUE, _STEP = 0, 7, 9  # ptrace requests


class EventCounter:
    """One event of this thread, outside the kernel.

    Args:
        kind, event: numbers of the event in linux/perf_event.h; by default instructions, counted by the processor.

    Raises:
        NotImplementedError: the event is unavailable or forbidden.
    """

    def __init__(self, kind: int = 0, event: int = 1) -> None:
        call = _SYSCALL.get(platform.machine())
        if sys.platform != "linux" or call is None:
            raise NotImplementedError("perf_event_open is known for Linux on x86-64 and AArch64 only")
        library = ctypes.CDLL(None, use_errno=True)
        # struct perf_event_attr: type, size, config; read_format: both times; flags: disabled, exclude_kernel, exclude_hv
        attributes = ctypes.create_string_buffer(128)
        struct.pack_into("=IIQQQQQ", attributes, 0, kind, 128, event, 0, 0, 3, 1 << 0 | 1 << 5 | 1 << 6)
        library.syscall.argtypes = [ctypes.c_long, ctypes.c_char_p, ctypes.c_long, ctypes.c_long, ctypes.c_long, ctypes.c_ulong]
        library.syscall.restype = ctypes.c_long
        self._file = int(library.syscall(call, ctypes.cast(attributes, ctypes.c_char_p), 0, -1, -1, 0))
        if self._file < 0:
            raise NotImplementedError(f"the processor's counter is not available ({os.strerror(ctypes.get_errno())})")

    def count(self, call: Callable[[], object]) -> int:
        """Return the number of events during a call."""
        import fcntl

        fcntl.ioctl(self._file, _RESET, 0)
        before = self._read()
        fcntl.ioctl(self._file, _ENABLE, 0)
        call()
        fcntl.ioctl(self._file, _DISABLE, 0)
        after = self._read()
        value, enabled, running = after[0], after[1] - before[1], after[2] - before[2]
        if running != enabled:  # another user of the counter, or another type of core
            raise NotImplementedError("the processor's counter ran only part of the time")
        return value

    def _read(self) -> tuple[int, int, int]:
        value, enabled, running = struct.unpack("=QQQ", os.read(self._file, 24))
        return value, enabled, running

    def close(self) -> None:
        """Release the counter."""
        os.close(self._file)


def count_by_counter(verbs: Sequence[Verb], repeats: int = 64) -> dict[str, float]:
    """Instructions of each verb, by the processor's counter: the minimum of three counts.

    Raises:
        NotImplementedError: there is no counter, or it does not work.
    """
    counter = EventCounter()
    counts = {}
    try:
        for verb in verbs:
            tries = []
            for _ in range(3):
                few, many = (counter.count(lambda verb=verb, n=n: verb.repeated(n)) for n in (2, 2 + repeats))  # type: ignore[misc]
                tries.append((many - few) / repeats)
            if not min(tries) > 0:
                raise NotImplementedError("the processor's counter did not move")
            counts[verb.name] = min(tries)
    finally:
        counter.close()
    return counts


# ---- one instruction at a time ----------------------------------------------------------------------------------------------


def run_stopped(names: Sequence[str]) -> None:
    """Run some verbs, each between two stops of this process, once and repeatedly, the first one twice more: the child of :func:`count_by_steps`."""
    from .verbs import verbs

    known = [verb for verb in verbs() if verb.name in names]
    kill, process = os.kill, os.getpid()

    def between(verb: Verb, repeats: int, number: int) -> None:
        native, call = verb.native, verb.call
        native.repeats = repeats
        call()
        kill(process, number)
        call()
        kill(process, number)

    for verb in known:
        if not verb.right:
            sys.exit(f"{verb.name}: wrong by {verb.error():.0e}")
        for repeats in (1, 2) * 8:  # Python specializes its bytecode, memory is allocated; signal 0 does nothing
            between(verb, repeats, 0)
    gc.disable()
    if ctypes.CDLL(None, use_errno=True).ptrace(_TRACEME, 0, 0, 0) != 0:
        sys.exit(f"single steps are forbidden ({os.strerror(ctypes.get_errno())})")
    for verb in known:
        for repeats in (1, 1, 1 + verb.more, 1 + 2 * verb.more) if verb is known[0] else (1, 1 + verb.more):
            between(verb, repeats, signal.SIGSTOP)


def count_by_steps(verbs: Sequence[Verb], progress: Progress = quiet, limit: float = 300.0) -> dict[str, float]:
    """Instructions of each verb, one at a time in a child process.

    Args:
        verbs: in the order of :func:`~delassus.bench.verbs.verbs`, the child runs those of the same names.
        progress: called with the fraction done.
        limit: time limit [s].

    Raises:
        NotImplementedError: single steps are unavailable, forbidden or too slow.
    """
    if sys.platform != "linux":
        raise NotImplementedError("single steps (ptrace) are used on Linux only")
    program = f"from delassus.bench.instructions import run_stopped; run_stopped({[verb.name for verb in verbs]!r})"
    command = [sys.executable, "-c", program]
    with _on_one_processor():
        child = subprocess.Popen(command, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, stderr=subprocess.PIPE, text=True)
        counts: list[int] = []
        ended = False
        try:
            for steps in _stepped(child.pid, time.monotonic() + limit):
                counts.append(steps)
                progress(len(counts) / (2 + 2 * len(verbs)))
            ended = True
        finally:
            if not ended:
                with suppress(ProcessLookupError):
                    os.kill(child.pid, signal.SIGKILL)
                    os.waitpid(child.pid, 0)
            child.returncode = 0  # it has been reaped
            complaint = child.stderr.read().strip() if child.stderr else ""
    if len(counts) != 2 + 2 * len(verbs):
        raise NotImplementedError(complaint.splitlines()[-1] if complaint else "single steps were not seen")
    # The first count warms up code not run with signals before. With more than one repeat, the core also reads a clock: the third number of the
    # first verb gives the cost of that
    once, twice, thrice = counts[1:4]
    clock = (twice - once) - (thrice - twice)
    differences = [twice - once, *(b - a for a, b in zip(counts[4::2], counts[5::2], strict=True))]
    return {verb.name: (difference - clock) / verb.more for verb, difference in zip(verbs, differences, strict=True)}


def _stepped(process: int, deadline: float) -> Iterator[int]:
    """Run a child from stop to stop, every other time by single steps; yield the number of steps."""
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long] * 4
    ptrace.restype = ctypes.c_long
    wait, stop = os.waitpid, signal.SIGSTOP
    step_trap = signal.SIGTRAP << 8 | 0x7F  # status of a process stopped by a single step

    def resume(request: int, given: int) -> int:
        if ptrace(request, process, 0, given) != 0:
            raise NotImplementedError(f"single steps failed ({os.strerror(ctypes.get_errno())})")
        return wait(process, 0)[1]

    status, steps, stepping = wait(process, 0)[1], 0, False
    while os.WIFSTOPPED(status):
        given = os.WSTOPSIG(status)
        if given == stop:
            if stepping:
                yield steps
            steps, stepping = 0, not stepping
        # signals other than our own are passed on
        status = resume(_STEP if stepping else _CONTINUE, 0 if given in (stop, signal.SIGTRAP) else given)
        steps += 1
        while stepping and status == step_trap:
            status = resume(_STEP, 0)
            steps += 1
            if steps % 4096 == 0 and time.monotonic() > deadline:
                raise NotImplementedError("single steps are too slow here")


@contextmanager
def _on_one_processor() -> Iterator[None]:
    """Stay on one processor, with child processes: a step takes two context switches between both, which are faster there."""
    before = os.sched_getaffinity(0)
    with suppress(OSError):
        os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, before)
