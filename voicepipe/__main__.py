"""`python -m voicepipe`."""

import sys

from voicepipe.commands.cli import main

if __name__ == "__main__":
    sys.exit(main())
