"""Run the command line as ``python -m reprobundle``."""

from reprobundle.cli import main

if __name__ == "__main__":
    main()
