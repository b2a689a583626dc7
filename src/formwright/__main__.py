"""`python -m formwright` is the command `formwright`."""

from formwright.cli.app import main

if __name__ == "__main__":
    main()
