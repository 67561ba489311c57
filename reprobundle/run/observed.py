"""Facts that follow from what a run did: its sizes, the models and data it read."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reprobundle.format.record import Fact, Randomness, StartTensor
from reprobundle.run.events import EventFile, Open
from reprobundle.run.facts import events_of

MOST_NAMED = 64
# Below <cache>/hub: docs "Understand caching" of huggingface_hub.
_HUB = re.compile(
    r"/(?P<kind>models|datasets)--(?P<name>[\w.-]+?)/snapshots/(?P<commit>[0-9a-f]{40})/"
)
# Below <cache>/datasets: <name>/<configuration>/<version>/<fingerprint>/.
_DATASETS = re.compile(
    r"/huggingface/datasets/(?P<name>[\w.-]+)/(?P<configuration>[\w.=,-]+)"
    r"/(?P<version>[\d.]+)/(?P<fingerprint>[0-9a-f]{16,64})/"
)
# torch.hub puts the first digits of the SHA-256 into the name.
_CHECKPOINT = re.compile(r"/hub/checkpoints/(?P<name>[\w.+-]+-[0-9a-f]{8,}\.pth?)$")


def observed_facts(files: tuple[EventFile, ...], known: Randomness) -> dict[str, Fact]:
    """Return the facts that the run itself showed.

    Args:
        files: Events of all processes.
        known: The run's randomness, which tells loaders and first tensors.
    """
    paths = [event.path for _, event in events_of(files, Open) if event.mode == "read"]
    return {
        "observed.batch_size": _batch_size(known),
        "observed.input_shapes": _shapes(known.start),
        "observed.models": _named(
            models(paths), "no file of a model hub's cache was seen to be read"
        ),
        "observed.datasets": _named(
            datasets(paths), "no file of a data set hub's cache was seen to be read"
        ),
    }


def _batch_size(known: Randomness) -> Fact:
    source = "first pass over a data loader"
    if not known.loaders:
        return Fact(unknown="no data loader of torch was used", source=source)
    size = known.loaders[0].batch_size
    if size is None:
        return Fact(unknown="the data loader forms no batches", source=source)
    return Fact(value=size, source=source)


def _shapes(start: tuple[StartTensor, ...]) -> Fact:
    """Return the shapes of the first inputs, or else of the first batch."""
    source = "first call of a module with weights, or first batch"
    for kind in ("input", "batch"):
        shown = tuple(
            f"{tensor.name} {tensor.dtype}{list(tensor.shape)}"
            for tensor in start
            if tensor.kind == kind
        )
        if shown:
            return Fact(value=shown[:MOST_NAMED], source=source)
    return Fact(unknown="no input of a module and no batch was seen", source=source)


def _named(names: Iterable[str], missing: str) -> Fact:
    found = tuple(sorted(set(names)))[:MOST_NAMED]
    source = "paths of the files that were read"
    return (
        Fact(value=found, source=source)
        if found
        else Fact(unknown=missing, source=source)
    )


def models(paths: Iterable[str]) -> list[str]:
    """Return ``owner/name@commit`` of hub models, and torch.hub's checkpoint names."""
    found = []
    for path in paths:
        match = _HUB.search(path)
        if match and match["kind"] == "models":
            found.append(_repository(match))
        checkpoint = _CHECKPOINT.search(path)
        if checkpoint:
            found.append(checkpoint["name"])
    return found


def datasets(paths: Iterable[str]) -> list[str]:
    """Return ``owner/name@commit`` of hub data sets, and prepared ones by fingerprint.

    A prepared one is ``name/configuration/version fingerprint``.
    """
    found = []
    for path in paths:
        match = _HUB.search(path)
        if match and match["kind"] == "datasets":
            found.append(_repository(match))
        prepared = _DATASETS.search(path)
        if prepared:
            name = prepared["name"].replace("___", "/")
            place = f"{name}/{prepared['configuration']}/{prepared['version']}"
            found.append(f"{place} {prepared['fingerprint']}")
    return found


def _repository(match: re.Match[str]) -> str:
    return f"{match['name'].replace('--', '/', 1)}@{match['commit']}"
