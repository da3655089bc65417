"""Builds of the compiled core: the CPU features that each needs, those of this CPU, and the choice of one.

An installation holds one build, for the machine that compiled it, or several, for x86-64-v2, -v3 and -v4. Nothing here runs code of a build,
which could stop the process with an illegal instruction.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from . import _cpu
from .errors import CpuError

VARIABLE = "DELASSUS_ARCH"  # environment variable that names the build to use
_REBUILD = "pip install --force-reinstall --no-deps --no-cache-dir --no-binary delassus delassus"


class Build(NamedTuple):
    """One build of the core: its instruction set, and the CPU features that its code may use."""

    arch: str
    features: frozenset[str]

    @property
    def module(self) -> str:
        """Name of its file, without the suffix."""
        return "_core_" + re.sub(r"\W", "_", self.arch)


class Choice(NamedTuple):
    """The build to use, and why."""

    build: Build
    reason: str


def installed() -> list[Build]:
    """Return the builds of this installation, the fastest last."""
    return [Build(arch, frozenset(features)) for arch, features in _cpu.builds()]


def cpu_features() -> frozenset[str]:
    """Return the features of this CPU that the operating system also supports, among those that compilers may use automatically."""
    return frozenset(_cpu.features())


def choose(builds: Sequence[Build], cpu: Collection[str], wanted: str | None) -> Choice:
    """Choose the last build whose features the CPU has, or the requested one.

    Args:
        builds: Builds, the fastest last.
        cpu: Features that the CPU has.
        wanted: Value of ``DELASSUS_ARCH``, or None.

    Raises:
        CpuError: No build runs on this CPU, or the requested one does not, or it does not exist.
    """
    usable = [b for b in builds if b.features <= set(cpu)]
    if wanted:
        return Choice(_wanted(builds, usable, cpu, wanted), f"{VARIABLE} in the environment names it")
    if usable:
        return Choice(usable[-1], "the only build of this installation" if len(builds) == 1 else "the fastest build that this CPU can run")
    least = builds[0]
    lacking = _listed(least.features - set(cpu))
    if least.arch == "native":
        raise CpuError(
            f"delassus was compiled for the CPU of another machine: its code uses {lacking}, which this CPU does not have. "
            f"Compile it on this machine ({_REBUILD}), or once for every x86-64 CPU (the same with -C cmake.define.DELASSUS_ARCH=dispatch)."
        )
    raise CpuError(
        f"delassus was compiled for {least.arch} or better: its code uses {lacking}, which this CPU does not have. "
        f"Compile it on this machine: {_REBUILD}"
    )


def _wanted(builds: Sequence[Build], usable: Sequence[Build], cpu: Collection[str], wanted: str) -> Build:
    """Return the build of that name, if it exists and the CPU can run it."""
    runs = ", ".join(b.arch for b in usable)
    advice = f"Unset it, or set it to one of: {runs}." if usable else "This CPU can run none of the installed builds."
    found = [b for b in builds if b.arch == wanted]
    if not found:
        raise CpuError(f"{VARIABLE}: expected an installed build ({', '.join(b.arch for b in builds)}), got {wanted!r}. {advice}")
    if found[0] not in usable:
        lacking = _listed(found[0].features - set(cpu))
        raise CpuError(f"{VARIABLE}={wanted}: the code of this build uses {lacking}, which this CPU does not have. {advice}")
    return found[0]


def _listed(features: Collection[str]) -> str:
    return ", ".join(sorted(features))


def chosen() -> Choice:
    """Choose the build that this process uses.

    Raises:
        CpuError: No build runs on this CPU, or ``DELASSUS_ARCH`` names one that does not.
    """
    return choose(installed(), cpu_features(), os.environ.get(VARIABLE))
