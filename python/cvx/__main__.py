"""``python -m cvx`` is the command ``cvx``."""

from cvx.cli import main

if __name__ == "__main__":
    main()
