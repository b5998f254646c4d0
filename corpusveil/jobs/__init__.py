"""The engines that run tasks: local processes, Spark, Beam, Dataflow; one file each."""
