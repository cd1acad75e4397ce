"""Adapters to other libraries, each behind its own extra; importing this package imports none."""
