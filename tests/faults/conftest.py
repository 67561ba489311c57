"""One small bundle with a replay, and how many changes of files each verb makes."""

from __future__ import annotations

import pytest

from tests.faults.cases import VERBS, Place, copied

SCRIPT = """\
import random
from pathlib import Path
Path("out").mkdir(exist_ok=True)
for number in range(3):
    Path(f"out/{number}.bin").write_bytes(random.Random(number).randbytes(40_000))
print("done")
"""


@pytest.fixture(scope="session")
def before(tmp_path_factory):
    """A place that is only copied."""
    place = Place(tmp_path_factory.mktemp("faults") / "before")
    place.project.mkdir(parents=True)
    (place.project / "train.py").write_text(SCRIPT)
    assert place.run(VERBS[0].call(place)).status == 0
    for options in (["--record", str(place.alone)], []):
        done = place.run([*VERBS[2].call(place), *options])
        assert "REPRODUCED" in done.out, done.err
    for verb in VERBS:
        trial = copied(place, place.folder.parent / verb.name)
        count = trial.changes(verb.call(trial))
        (place.folder / f"changes.{verb.name}").write_text(str(count))
    return place
