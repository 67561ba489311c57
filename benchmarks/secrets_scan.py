"""How fast the scan for secrets reads: MB/s for what bundles hold.

usage: python benchmarks/secrets_scan.py
"""

from __future__ import annotations

import base64
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from reprobundle.run.secrets.scan import scan_file

MB = 1_000_000
ROUNDS = 5


def contents() -> dict[str, bytes]:
    """Return content of 20 MB for each kind of file."""
    drawn = random.Random(0)
    source = Path(scan_file.__code__.co_filename).read_bytes()
    row = "".join(f"{drawn.random():.6f}," for _ in range(20)) + "1\n"
    picture = base64.b64encode(drawn.randbytes(3 * MB))
    return {
        "source.py": source * (20 * MB // len(source)),
        "table.csv": row.encode() * (20 * MB // len(row)),
        "notebook.ipynb": b'{"image/png": "' + picture * 5 + b'"}',
        "weights.safetensors": bytes(8) + drawn.randbytes(20 * MB),
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in contents().items():
            file = Path(folder) / name
            file.write_bytes(content)
            seconds = []
            for _ in range(ROUNDS):
                start = time.process_time()
                scan_file(name, file)
                seconds.append(time.process_time() - start)
            rate = len(content) / MB / statistics.median(seconds)
            sys.stdout.write(f"{name:<22} {rate:8.0f} MB/s\n")


if __name__ == "__main__":
    main()
