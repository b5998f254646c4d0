"""Write the software bill of materials of corpusveil, CycloneDX JSON: ``python scripts/bill_of_materials.py UV FILE``.

uv makes it from ``uv.lock``: what a plain installation depends on is required, what only an extra brings is optional.
Packages are named by purl and version, without the hosts that they were locked from.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
EXPORT = ("export", "--quiet", "--frozen", "--offline", "--no-cache", "--no-dev", "--package", "corpusveil")


def exported(uv: str, *more: str) -> dict[str, Any]:
    done = subprocess.run(
        [uv, *EXPORT, "--format", "cyclonedx1.5", *more],
        cwd=ROOT, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def main(uv: str, file: str) -> None:
    bill = exported(uv, "--all-extras")
    required = {component["name"] for component in exported(uv)["components"]}
    for component in bill["components"]:
        component.pop("externalReferences", None)
        component["scope"] = "required" if component["name"] in required else "optional"
    Path(file).write_text(json.dumps(bill, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
