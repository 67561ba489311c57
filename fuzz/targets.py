"""What is fuzzed: each target takes bytes, and fails on whatever is no answer of ours.

A target returns normally if its input was accepted, or refused with one of our errors.
Anything else it raises is a finding: another exception, or `WrongAnswerError` for an answer that
cannot be right.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from unittest import mock

from fuzz.plans import build
from reprobundle.cli import run
from reprobundle.errors import BundleError, ReprobundleError, UnreadableOutputError
from reprobundle.format.canonical import decode, encode
from reprobundle.format.lock import Interpreter
from reprobundle.format.names import check_name, check_names
from reprobundle.format.reader import Bundle, check_digests, open_any
from reprobundle.format.signature import parse_signature, signed_subject
from reprobundle.outputs.summary import summarise
from reprobundle.pack.policy import read_stated
from reprobundle.run.events import read_events
from reprobundle.run.pylock_file import parse_pylock, requirement_lines, select
from reprobundle.run.targets import all_targets
from reprobundle.sign.signers import names_of_key, read_signers
from tests.format.forge import Forged, build_zip

VECTORS = Path(__file__).parent.parent / "tests" / "vectors"
STATUSES = {0, 10, 11, 12, 20, 21, 22}
VERBS = (
    ("verify", "--deep", "--verbose"),
    ("verify", "--json", "--acceptance"),
    ("verify", "--integrity"),
    ("inspect", "--verbose"),
    ("inspect", "--json"),
    ("inspect", "--target", "macos-arm64"),
    ("report", "--format", "html", "-o", "{out}"),
    ("report", "--format", "markdown"),
    ("report", "--format", "junit"),
    ("report", "--style", "aec"),
    ("report", "--style", "checklist"),
    ("policy", "suggest"),
    ("diff",),
    ("diff", "--json"),
    ("extract", "--into", "{out}"),
)


class WrongAnswerError(AssertionError):
    """An answer that cannot be right."""


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Yield a new folder in memory, where there is one."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    path = Path(tempfile.mkdtemp(prefix="fuzz-", dir=base))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def call(arguments: Sequence[object]) -> tuple[int, str, str]:
    """Run the command line here and return status, output and errors.

    Raises:
        WrongAnswerError: The status is none of ours, or an error has more than one line.
    """
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run([str(argument) for argument in arguments])
    if status not in STATUSES:
        raise WrongAnswerError(f"exit status {status}")
    told = err.getvalue()
    refused = told.startswith("reprobundle: ")
    if refused and (len(told.splitlines()) != 1 or not told.rstrip("\n").isprintable()):
        raise WrongAnswerError(f"an error that is not one line: {told!r}")
    if refused and "report" not in told and out.getvalue():
        raise WrongAnswerError(
            f"output and an error: {out.getvalue()[-200:]!r} {told!r}"
        )
    return status, out.getvalue(), told


def ask(path: Path, number: int) -> None:
    """Ask `verify` and one verb more about the file at `path`."""
    with folder() as place:
        status, shown, _ = call(["verify", "--json", path])
        report = json.loads(shown) if shown else {}
        if report and report["exit_status"] != status:
            raise WrongAnswerError("the report and the exit status disagree")
        for verb in {VERBS[number % len(VERBS)], VERBS[number // 16 % len(VERBS)]}:
            words = [str(word).format(out=place / "out") for word in verb]
            call(
                [words[0], path, *words[1:]] if words[0] != "policy" else [*words, path]
            )
            _check_extracted(path, place / "out")


def _check_extracted(path: Path, out: Path) -> None:
    """Compare what was extracted with what another program reads from the file."""
    if not out.is_dir():
        if any(one.name.startswith(".reprobundle-") for one in out.parent.iterdir()):
            raise WrongAnswerError("half of a folder was left")
        out.unlink(missing_ok=True)
        return
    archive = zipfile.ZipFile(path)
    plain = {name for name in archive.namelist() if not name.endswith(".zst")}
    found = {
        one.relative_to(out).as_posix(): one
        for one in out.rglob("*")
        if not (one.is_dir() and not one.is_symlink())
    }
    for name, one in found.items():
        if one.is_symlink() or not one.is_file():
            raise WrongAnswerError(f"extract made something that is no file: {name!r}")
        if name in plain and one.read_bytes() != archive.read(name):
            raise WrongAnswerError(f"extract wrote other content: {name!r}")
    shutil.rmtree(out)


# --- targets -------------------------------------------------------------------------


def bundle(data: bytes) -> None:
    """Read `data` as a plan, seal it, and ask two verbs about the bundle."""
    try:
        plan = json.loads(data)
        made = build(plan) if isinstance(plan, dict) else b""
    except (ValueError, RecursionError, KeyError, AttributeError, TypeError):
        return
    except Exception as error:
        if type(error).__name__ != "error":  # struct.error: beyond what a ZIP can state
            raise
        return
    with folder() as place, mock.patch("shutil.which", _nothing):
        path = place / "x.rpb.zip"
        path.write_bytes(made)
        ask(path, sum(data[-64:]))
        if not plan.get("sealed"):
            base = place / "base.rpb.zip"
            base.write_bytes(_base())
            call(["verify", base, "--replay-file", path])


def _nothing(name: str, *rest: object, **others: object) -> None:
    """Stand for `shutil.which`: no other program is asked."""


_kept: list[bytes] = []


def _base() -> bytes:
    if not _kept:
        _kept.append((VECTORS / "container/smallest/bundle.rpb.zip").read_bytes())
    return _kept[0]


def container(data: bytes) -> None:
    """Open `data` as a file; what passes is equal to what its entries lead to."""
    with folder() as place:
        path = place / "x.rpb.zip"
        path.write_bytes(data)
        try:
            with open_any(path) as opened:
                damage: list[object] = []
                if isinstance(opened, Bundle):
                    damage = [*check_digests(opened, deep=True, workers=1)]
                else:
                    for name in opened.unsealed_contents():
                        opened.read_unsealed(name)
                entries = opened.entries
                compressed = any(entry.name.endswith(".zst") for entry in entries)
        except BundleError as error:
            if not str(error).isprintable():
                raise WrongAnswerError(repr(str(error))) from error
            return
        if not damage and not compressed:
            archive = zipfile.ZipFile(path)
            names = archive.namelist()
            try:
                held = [Forged(name, archive.read(name)) for name in names]
            except zipfile.BadZipFile:
                # The records in a file of replays say what their members have to be.
                held = []
            if held and build_zip(held) != data:
                raise WrongAnswerError("bytes that belong to nothing were accepted")
        with mock.patch("shutil.which", _nothing):
            ask(path, sum(data[-64:]))


def document(data: bytes) -> None:
    """Read `data` as JSON; what passes is what Python's own reader reads."""
    for canonical in (False, True):
        try:
            value = decode(data, object, where="x", rule="R-6.4", canonical=canonical)
        except BundleError as error:
            if not str(error).isprintable():
                raise WrongAnswerError(repr(str(error))) from error
            continue
        expected = json.loads(data)
        if not _alike(value, expected):
            raise WrongAnswerError(f"{value!r} is not {expected!r}")
        if canonical and encode(value) != data:
            raise WrongAnswerError("canonical form is not that of the value")


def _alike(one: object, other: object) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        pairs = [(one[key], other.get(key)) for key in one]
        return one.keys() == other.keys() and all(_alike(*pair) for pair in pairs)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    numbers = isinstance(one, (int, float)) and isinstance(other, (int, float))
    # msgspec reads whole numbers beyond 64 bits as floats.
    return one == other if not numbers else float(one) == float(other)  # type: ignore[arg-type]


def names(data: bytes) -> None:
    """Read lines as names; a set that passes makes as many files as it has names."""
    listed = data.decode("utf-8", "replace")
    if data[:1] == b"!":
        listed = data.decode(
            "utf-16-le", "surrogatepass" if len(data) % 2 == 0 else "replace"
        )
    lines = listed.split("\n")[:50]
    passed = []
    for line in lines:
        with contextlib.suppress(BundleError):
            check_name(line)
            passed.append(line)
    try:
        check_names(passed)
    except BundleError:
        return
    with folder() as place:
        for name in passed:
            made = place / name
            made.parent.mkdir(parents=True, exist_ok=True)
            with made.open("xb"):
                pass
            if place not in made.resolve().parents:
                raise WrongAnswerError(f"{name!r} leaves its folder")


def signature(data: bytes) -> None:
    """Read `data` as a signature, as a list of signers, and as a policy."""
    with contextlib.suppress(BundleError):
        parse_signature(data, where="x")
        signed_subject(f"signatures/{'0' * 64}.{'0' * 16}.sig", data)
    with folder() as place:
        path = place / "somebody.keys"
        path.write_bytes(data)
        with contextlib.suppress(ReprobundleError):
            read = read_signers([path])
            names_of_key(read, "SHA256:x")
            if read.count(b"\n") > data.count(b"\n") + 1:
                raise WrongAnswerError("a list of signers grew")


def policy(data: bytes) -> None:
    """Read `data` as a policy file."""
    with folder() as place:
        path = place / "policy.json"
        path.write_bytes(data)
        with contextlib.suppress(ReprobundleError):
            read_stated(path)


_PYTHON = Interpreter(
    version="3.11.7",
    implementation="CPython",
    architecture="x86_64",
    system="linux",
    platform="linux_x86_64",
)


def lock(data: bytes) -> None:
    """Read `data` as a lock and select from it for every target."""
    with contextlib.suppress(ReprobundleError):
        parsed = parse_pylock(data)
        for target in all_targets(_PYTHON):
            requirement_lines(select(parsed, target).chosen)


def events(data: bytes) -> None:
    """Read `data` as what a recorder wrote."""
    with folder() as place:
        (place / "events").mkdir()
        (place / "events" / "1-1.jsonl").write_bytes(data)
        with contextlib.suppress(ReprobundleError):
            list(read_events(place / "events"))


def output(data: bytes) -> None:
    """Read an output: its name on the first line, its content behind it."""
    first, _, content = data.partition(b"\n")
    name = first.decode("utf-8", "replace")[:100]
    with folder() as place:
        path = place / "content"
        path.write_bytes(content)
        summarise(name, path, tensors=path)
        from reprobundle.outputs.images import image_format, read_frames

        if image_format(content[:32]):
            with contextlib.suppress(UnreadableOutputError), path.open("rb") as stream:
                for frame in read_frames(stream):
                    sum(1 for _ in frame.samples.blocks(1 << 16))


TARGET_FUNCTIONS: dict[str, Callable[[bytes], None]] = {
    one.__name__: one
    for one in (
        bundle,
        container,
        document,
        names,
        signature,
        policy,
        lock,
        events,
        output,
    )
}
TREES = frozenset({"bundle", "document", "policy"})
"""Targets whose inputs are JSON and are changed as trees."""
