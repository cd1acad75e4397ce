"""ALFWorld: games, the engine that plays them, demonstrations, an agent that learns from memory."""
