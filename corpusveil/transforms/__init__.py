"""A release, its batch kernel, and the Beam and Spark transforms that wrap it."""
