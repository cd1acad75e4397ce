"""A cluster on one machine: nodes are killed, namespaces moved, and what it costs is measured."""
