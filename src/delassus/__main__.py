"""The command ``delassus`` as ``python -m delassus``."""

from .cli import main

if __name__ == "__main__":
    main()
