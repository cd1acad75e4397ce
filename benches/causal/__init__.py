"""What the causal parts are measured on, and the programs that measure them."""
