"""One file a command; ``cvx.cli.app`` lists them."""
