"""``python -m delassus`` is the command ``delassus``, for where the folder of commands is not on the path."""

from .cli import main

main()
