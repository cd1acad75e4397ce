"""The index beside hnswlib, faiss, usearch and numpy, in one run."""
