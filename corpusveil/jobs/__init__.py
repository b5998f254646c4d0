"""What runs tasks: local processes, Spark, Spark Connect, Beam, Dataflow; one file an engine."""
