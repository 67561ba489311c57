"""A bundle as one JSON document that can be changed anywhere and sealed again.

Nearly every change to the bytes of a bundle is refused by its digests. To reach the code
behind them, the fuzzer changes a *plan*: the documents and files of a bundle as one JSON
tree. `build` makes a container of it whose digests are right.

A plan is ``{"sealed": {path: file}, "replays": [{name: file}], "loose": {name: file}}``.
A file is ``{"json": value}``, ``{"text": str}`` or ``{"base64": str}``; a sealed one may
have ``role`` and ``executable`` too.
"""

from __future__ import annotations

import base64
import binascii
import json
import zipfile
from io import BytesIO
from typing import Any

from blake3 import blake3

from tests.format.forge import ORDER, Forged, build_zip, canonical, member

Plan = dict[str, Any]
BUNDLE = "{bundle}"
"""Stands for the id of the bundle, which every change of a sealed file changes."""

POLICY = "{policy}"
"""Stands for the digest of ``policy.json``, the key of every sample."""

DOCUMENTS = ("record.json", "policy.json", "environment.json", "memory.json")
"""Files that become trees, and the acceptance records; all others stay what they are."""

MOST_BYTES = 1 << 20


def plan_of(bundle: bytes) -> Plan:
    """Return the plan of a bundle or a replay file."""
    archive = zipfile.ZipFile(BytesIO(bundle))
    contents = {name: archive.read(name) for name in archive.namelist()}
    manifest = contents.pop("manifest.json", None)
    known = {} if manifest is None else {digest(manifest): BUNDLE}
    if "policy.json" in contents:
        known[digest(contents["policy.json"])] = POLICY
    sealed: dict[str, Any] = {}
    for told in json.loads(manifest)["members"] if manifest is not None else ():
        path = told["path"]
        data = contents.pop(path, None)
        if path != "B3SUMS" and data is not None:
            sealed[path] = {"role": told["role"], **file_of(path, data, known)}
    replays: dict[str, dict[str, Any]] = {}
    loose = {}
    for name, data in contents.items():
        top, _, rest = name.partition("/")
        if top == "replays":
            replay, _, inner = rest.partition("/")
            replays.setdefault(replay, {})[inner] = file_of(name, data, known)
        else:
            loose[name] = file_of(name, data, known)
    return {"sealed": sealed, "replays": list(replays.values()), "loose": loose}


def together(bundle: bytes, replay_file: bytes) -> Plan:
    """Return the plan of a bundle with the replays of a file attached to it."""
    plan = plan_of(bundle)
    identity = digest(zipfile.ZipFile(BytesIO(bundle)).read("manifest.json"))
    text = json.dumps(plan_of(replay_file)).replace(identity, BUNDLE)
    plan["replays"] += json.loads(text)["replays"]
    return plan


def file_of(name: str, data: bytes, known: dict[str, str]) -> dict[str, Any]:
    """Return a file of a plan; a known digest in it becomes its placeholder."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
    for found, placeholder in known.items():
        text = text.replace(found, placeholder)
    if not name.startswith("acceptance/") and name.rpartition("/")[2] not in DOCUMENTS:
        return {"text": text}
    try:
        value = json.loads(text)
    except ValueError:
        return {"text": text}
    return {"json": value} if isinstance(value, dict) else {"text": text}


def build(plan: Plan) -> bytes:
    """Return the container that a plan describes, its digests right.

    Raises:
        ValueError: The plan describes none.
    """
    sealed = {
        path: (content_of(told), told)
        for path, told in _items(plan.get("sealed"))
        if path.partition("/")[0] in ORDER and isinstance(told, dict)
    }
    key = digest(sealed["policy.json"][0]) if "policy.json" in sealed else POLICY
    known = {POLICY: key}
    mended = _mended({path: _filled(data, known) for path, (data, _) in sealed.items()})
    paths = sorted(mended, key=lambda p: (ORDER.index(p.partition("/")[0]), p.encode()))
    members = [_member(path, mended[path], sealed[path][1]) for path in paths]
    lines = "".join(f"{one['blake3']}  {one['path']}\n" for one in members).encode()
    members.append(member("B3SUMS", lines))
    manifest = canonical(
        {
            "format": "reprobundle",
            "version": "1.0",
            "chunk_bytes": 4 << 20,
            "members": members,
        }
    )
    entries = [Forged(path, mended[path]) for path in paths]
    entries += [Forged("B3SUMS", lines), Forged("manifest.json", manifest)]
    return build_zip(
        [
            *(entries if sealed else ()),
            *_unsealed(plan, {**known, BUNDLE: digest(manifest)}),
        ]
    )


def digest(data: bytes) -> str:
    """Return the BLAKE3 digest of `data`."""
    return str(blake3(data).hexdigest())


def content_of(told: object) -> bytes:
    """Return the bytes of a file of a plan.

    Raises:
        ValueError: It describes none.
    """
    if not isinstance(told, dict):
        raise ValueError("no file")
    if "json" in told:
        text = json.dumps(told["json"], sort_keys=True, ensure_ascii=False)
        return f"{text}\n".encode("utf-8", "surrogatepass")
    if "base64" in told:
        try:
            return base64.b64decode(str(told["base64"]))
        except binascii.Error as error:
            raise ValueError("no base64") from error
    return str(told.get("text", "")).encode("utf-8", "surrogatepass")


def _items(value: object) -> list[tuple[str, Any]]:
    return list(value.items())[:200] if isinstance(value, dict) else []


def _member(path: str, data: bytes, told: dict[str, Any]) -> dict[str, Any]:
    facts = member(path, data)
    if isinstance(told.get("role"), str):
        facts["role"] = told["role"]
    if told.get("executable") is True:
        facts["executable"] = True
    return facts


def _filled(data: bytes, known: dict[str, str]) -> bytes:
    for placeholder, found in known.items():
        data = data.replace(placeholder.encode(), found.encode())
    return data


def _unsealed(plan: Plan, known: dict[str, str]) -> list[Forged]:
    entries = []
    replays = plan.get("replays")
    for replay in replays[:20] if isinstance(replays, list) else ():
        files = {
            name: _filled(content_of(told), known) for name, told in _items(replay)
        }
        files = _mended(files)
        record = files.pop("record.json", None)
        if record is None:
            continue
        top = f"replays/{digest(record)}"
        entries.append(Forged(f"{top}/record.json", record))
        ordered = sorted(files, key=lambda name: name.encode("utf-8", "surrogatepass"))
        entries += [Forged(f"{top}/{name}", files[name]) for name in ordered]
    for name, told in _items(plan.get("loose")):
        data = _filled(content_of(told), known)
        own = digest(data)
        if name.startswith("acceptance/"):
            name = f"acceptance/{own}.json"
        elif name.startswith("signatures/"):
            subject = name[11:75].replace(BUNDLE, known[BUNDLE])
            name = f"signatures/{subject}.{own[:16]}.sig"
        entries.append(Forged(name, data))
    return entries


def _mended(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return `files` with the digests that their records state made right."""
    for path in [path for path in files if path.rpartition("/")[2] == "record.json"]:
        folder = path[: -len("record.json")]
        try:
            record = json.loads(files[path])
            _mend(record, files, folder)
        except (ValueError, RecursionError):
            continue
        text = json.dumps(record, sort_keys=True, ensure_ascii=False)
        files[path] = f"{text}\n".encode("utf-8", "surrogatepass")
    return files


def _mend(record: object, files: dict[str, bytes], folder: str) -> None:
    if not isinstance(record, dict):
        return
    for key, name in (("members", "name"), ("outputs", "member")):
        for one in record.get(key) or () if isinstance(record.get(key), list) else ():
            data = (
                files.get(f"{folder}{one.get(name)}") if isinstance(one, dict) else None
            )
            if data is not None and one.get("stored", "here") == "here":
                one.update(size_bytes=len(data), blake3=digest(data))
