"""`python -m lanikai.sim`: the program `lanikai`."""

from .cli.program import main

if __name__ == "__main__":
    main()
