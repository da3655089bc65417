"""Every exception the library raises on purpose. All derive from :class:`DelassusError`.

A message names the argument, what was expected, what came, and the way out.
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
    """A description of a mechanism that no mechanism can have."""


class LoadError(DelassusError, ValueError):
    """A file or text that cannot be read as a model."""


class MeshError(LoadError):
    """A mesh file that a robot description names is missing, damaged or of another kind; loading lists the shape in ``ignored`` and goes on."""


class MujocoError(DelassusError, RuntimeError):
    """MuJoCo stopped in the middle of its work: the message is its own. What was asked of it is not done."""


class BusyError(DelassusError, RuntimeError):
    """Two threads used one workspace at once."""


class StaleError(DelassusError, RuntimeError):
    """An operator was used before it had numbers, or after what they depend on changed."""


class MissingExtraError(DelassusError, ImportError):
    """An optional package is needed that is not installed; the message names the extra that brings it."""


class WriteError(DelassusError, OSError):
    """A file could not be written; the message says what was lost and what is still there."""


class UnstableError(DelassusError, ArithmeticError):
    """A simulation whose velocities grew beyond numbers."""


class WorkerError(DelassusError, RuntimeError):
    """Workers of a study were lost too often, cannot be reached, lack the package or have another version; the message names the rows. Finished rows are kept."""


class FunctionError(DelassusError, RuntimeError):
    """A function of the user's raised or returned what it must not, in a study; the message names the function and the row. Finished rows are kept."""


class DatasetError(DelassusError, ValueError):
    """A folder of results is of another study, or cannot be read. Nothing in it was changed."""


class InaccurateError(DelassusError, ArithmeticError):
    """A solution that no method could bring within the promised backward error; the message has the one reached."""


class CapacityError(DelassusError, RuntimeError):
    """More contacts at once than a step of a simulation takes; nothing has changed."""


class SingularError(DelassusError, ArithmeticError):
    """A result is not finite: the mass matrix is singular in this pose, or numbers overflowed."""


__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "BusyError",
    "CapacityError",
    "DatasetError",
    "DelassusError",
    "FunctionError",
    "InaccurateError",
    "LoadError",
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
