"""Artifacts, shards, shard tasks, records and manifests at any fsspec URL."""
