"""`python -m ldpstream.agents.cli`: the command line without its console script."""

import sys

from ldpstream.agents.cli.main import main

if __name__ == "__main__":
    main(sys.argv[1:])
