"""The engines that run tasks: local processes, Spark, Spark Connect, Beam, Dataflow; one file each."""
