"""Exceptions of the library. All derive from :class:`DelassusError`.

A message names the argument, what was expected, what was given, and what to do.
"""

from __future__ import annotations


class DelassusError(Exception):
    """Base of all errors of this library."""


class ArgumentError(DelassusError, ValueError):
    """An argument has a wrong shape or value."""


class NotFiniteError(ArgumentError):
    """An argument holds NaN or infinity."""


class QuaternionError(ArgumentError):
    """A quaternion does not have unit length."""


class ArgumentTypeError(DelassusError, TypeError):
    """An argument has a wrong type or dtype, or is an object of a class that is not supported."""


class UnknownNameError(DelassusError, LookupError):
    """A name that the model or the library does not have."""


class ModelError(DelassusError, ValueError):
    """An invalid description of a mechanism."""


class LoadError(DelassusError, ValueError):
    """A file or text that cannot be read as a model."""


class MeshError(LoadError):
    """A mesh file that a robot description names is missing, damaged or of an unsupported kind; loading lists the shape in ``ignored`` and continues."""


class MujocoError(DelassusError, RuntimeError):
    """MuJoCo reported an error; the message is its own."""


class BusyError(DelassusError, RuntimeError):
    """Two threads used one workspace at the same time."""


class StaleError(DelassusError, RuntimeError):
    """An operator was used before ``update``, or after something it depends on changed."""


class CpuError(DelassusError, ImportError):
    """The compiled core cannot run on this CPU, or ``DELASSUS_ARCH`` names a build that is missing or cannot run on it."""


class MissingExtraError(DelassusError, ImportError):
    """An optional package is not installed; the message names the extra to install."""


class WriteError(DelassusError, OSError):
    """A file could not be written; the message says what was lost and what is still there."""


class UnstableError(DelassusError, ArithmeticError):
    """The velocities of a simulation are no longer finite."""


class WorkerError(DelassusError, RuntimeError):
    """Workers of a study crashed repeatedly, cannot be reached, lack the package or have another version; the message names the rows. Finished rows are kept."""


class FunctionError(DelassusError, RuntimeError):
    """A user's function in a study raised an error or returned an invalid value; the message names the function and the row. Finished rows are kept."""


class DatasetError(DelassusError, ValueError):
    """A folder of results belongs to another study, or cannot be read. It was not changed."""


class InaccurateError(DelassusError, ArithmeticError):
    """No method reached the guaranteed backward error; the message states the error reached."""


class CapacityError(DelassusError, RuntimeError):
    """Too many contacts for one simulation step; the state did not change."""


class MatrixSizeError(DelassusError, MemoryError):
    """A dense matrix would not fit into the memory of this machine; the message states its size and names an alternative that needs no matrix."""


class SingularError(DelassusError, ArithmeticError):
    """A result is not finite: the mass matrix is singular in this pose, or numbers overflowed."""


__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "BusyError",
    "CapacityError",
    "CpuError",
    "DatasetError",
    "DelassusError",
    "FunctionError",
    "InaccurateError",
    "LoadError",
    "MatrixSizeError",
    "MeshError",
    "MissingExtraError",
    "ModelError",
    "MujocoError",
    "NotFiniteError",
    "QuaternionError",
    "SingularError",
    "StaleError",
    "UnknownNameError",
    "UnstableError",
    "WorkerError",
    "WriteError",
]
