"""How well memory tells what is done next, and how it will end."""
