"""`python -m repo2ctx`: the command."""

from repo2ctx.cli import main

if __name__ == "__main__":
    main()
