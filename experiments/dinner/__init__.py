"""A dinner that three scripted characters plan, with their memories and with full definitions."""
