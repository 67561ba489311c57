"""Changes to a JSON document that keep it JSON, for the fuzzer."""

from __future__ import annotations

import base64
import binascii
import copy
import json
import random
from collections.abc import Callable
from typing import Any

Mutate = Callable[[bytes, int], bytes]

NUMBERS = (
    0, 1, -1, 2, 16, 255, 256, 2**31 - 1, 2**31, 2**32, 2**53 - 1, 2**53, 2**63 - 1,
    2**63, 2**64, 10**30, -(2**63), 0.0, -0.0, 0.5, 1e-320, 1e308, -1e308, 1e-5,
)  # fmt: skip
STRINGS = (
    "", "nan", "inf", "-inf", "\0", "..", "../x", "/", "a\nb", "\x1b[31m", "é", "e\u0301",
    "\u202e", "cpu", "mps", "cuda", "cuda:0", "main", "float32", "bfloat16", "number",
    "record:x", "metric:x", "here", "none", "sample", "sealed", "withheld", "measured",
    "repeat", "evidence", "reference", "replay", "counterpart", "restart", "truth",
    "2025-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0" * 64, "*", "[", "[!a]", "{project}",
    "runs/1/record.json", "policy.json", "x" * 5000, "(" * 100, "1" * 400, "<script>",
)  # fmt: skip
EMPTY = (None, True, False, {}, [], [[]], {"": None})


def mutate_document(data: bytes, most: int, seed: int, mutate: Mutate) -> bytes:
    """Return `data`, a JSON document, changed in one to five places."""
    rng = random.Random(seed)
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return mutate(data, most)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5))):
        tree = _changed(tree, rng, mutate)
    made = encoded(tree)
    return made if len(made) <= most else data


def cross_documents(one: bytes, other: bytes, most: int, seed: int) -> bytes:
    """Return the first document with a part of the second at the same place."""
    rng = random.Random(seed)
    try:
        tree, donor = json.loads(one), json.loads(other)
    except (ValueError, RecursionError):
        return one
    target, source = tree, donor
    while True:
        shared = _shared_keys(target, source)
        if not shared:
            break
        key = rng.choice(shared)
        if rng.random() < 0.25 or not isinstance(source[key], (dict, list)):
            target[key] = copy.deepcopy(source[key])
            break
        target, source = target[key], source[key]
    made = encoded(tree)
    return made if len(made) <= most else one


def encoded(tree: object) -> bytes:
    """Return a JSON document; lone surrogates are kept."""
    text = json.dumps(tree, separators=(",", ":"))
    return text.encode()


def _shared_keys(one: Any, other: Any) -> list[Any]:
    if isinstance(one, dict) and isinstance(other, dict):
        return sorted(one.keys() & other.keys())
    if isinstance(one, list) and isinstance(other, list):
        return list(range(min(len(one), len(other))))
    return []


def _changed(tree: Any, rng: random.Random, mutate: Mutate) -> Any:
    parent, key = _place(tree, rng)
    if parent is None:
        return tree
    value = parent[key]
    kind = rng.random()
    if kind < 0.08:
        del parent[key]
    elif kind < 0.18:
        parent[key] = copy.deepcopy(rng.choice(EMPTY))
    elif kind < 0.28:
        donor, place = _place(tree, rng)
        parent[key] = copy.deepcopy(donor[place]) if donor is not None else value
    elif kind < 0.36 and isinstance(parent, list):
        parent.insert(key, copy.deepcopy(value))
    elif kind < 0.42 and isinstance(parent, dict):
        parent[rng.choice((*STRINGS[:12], *parent, _text(key, mutate)))] = value
    else:
        parent[key] = _other(key, value, rng, mutate)
    return tree


def _place(tree: Any, rng: random.Random) -> tuple[Any, Any]:
    """Return a container inside the tree and a key of it, deep ones more often."""
    parent, key = None, None
    node = tree
    while isinstance(node, (dict, list)) and node:
        if parent is not None and rng.random() < 0.12:
            break
        keys = list(node) if isinstance(node, dict) else range(len(node))
        parent, key = node, rng.choice(list(keys))
        node = parent[key]
    return parent, key


def _other(key: Any, value: Any, rng: random.Random, mutate: Mutate) -> Any:
    if key == "base64" and isinstance(value, str):
        return _bytes(value, mutate)
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        near = (value + 1, value - 1, -value, value * 2)
        return rng.choice((*NUMBERS, *near)) if rng.random() < 0.9 else str(value)
    if isinstance(value, str):
        choice = rng.random()
        if choice < 0.5:
            return rng.choice(STRINGS)
        return _text(value, mutate) if choice < 0.9 else rng.choice(NUMBERS)
    return rng.choice((*NUMBERS, *STRINGS))


def _bytes(value: str, mutate: Mutate) -> str:
    try:
        data = base64.b64decode(value)
    except binascii.Error:
        return value
    return base64.b64encode(mutate(data, len(data) + 64)).decode()


def _text(value: object, mutate: Mutate) -> str:
    data = str(value).encode("utf-8", "surrogatepass")
    return mutate(data, len(data) + 16).decode("utf-8", "replace")
