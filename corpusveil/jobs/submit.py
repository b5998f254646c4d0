"""What ``spark-submit`` runs: the command line, on the cluster that it was submitted to."""

import runpy

if __name__ == "__main__":
    runpy.run_module("corpusveil", run_name="__main__", alter_sys=True)
