"""Replaces itself by the build of the compiled core that suits the CPU: importing ``delassus._core`` gives that build."""

import sys
from importlib.machinery import ExtensionFileLoader, PathFinder
from importlib.util import module_from_spec, spec_from_file_location

from . import _builds
from .errors import CpuError


def _load() -> None:
    build = _builds.chosen().build
    found = PathFinder.find_spec(f"{__package__}.{build.module}", sys.modules[__package__].__path__)
    if found is None or found.origin is None:
        raise CpuError(f"The file of the build {build.arch!r} is missing from {__package__}: install the package again.")
    # every build calls itself _core, so that its classes are delassus._core.Model … and pickles do not depend on the build
    spec = spec_from_file_location(__name__, found.origin, loader=ExtensionFileLoader(__name__, found.origin))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[__name__] = module
    spec.loader.exec_module(module)


_load()
