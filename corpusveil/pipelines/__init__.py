"""Whole flows for Beam (locally, on a cluster, on Dataflow) and the local engine."""
