"""Text games: who plays them, with which memory, and an agent that is the same in all of them."""
