"""Replay a bundle: check it, rebuild its environment, run it, attach the record."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from reprobundle.errors import BadCallError, DigestError, EnvironmentUnusableError
from reprobundle.format.lock import PYLOCK_MEMBER
from reprobundle.format.reader import Bundle, check_digests, open_bundle
from reprobundle.replay.data_use import data_use
from reprobundle.replay.extracted import NEEDED_ROLES
from reprobundle.replay.job import ReplayJob, Say
from reprobundle.replay.options import Replayed, ReplayOptions
from reprobundle.replay.plan import ReplayPlan, make_plan
from reprobundle.run.command import platform_name
from reprobundle.run.copies import DataUse
from reprobundle.run.secrets.gate import Gate
from reprobundle.run.space import require_writable
from reprobundle.temporary.guarded import guarded_folder
from reprobundle.verify.verify import verify_bundle


def inspect_plan(options: ReplayOptions) -> ReplayPlan:
    """Check the bundle's integrity and return what a replay would run.

    Nothing of the bundle is executed.

    Raises:
        BundleError: The bundle is unreadable, unsafe or altered.
        BadCallError: The quick claim was asked for and there is none, or a kind of
            sensitive content that does not exist is allowed.
    """
    Gate(options.allow_sensitive)
    if options.reference_by and platform_name() != "linux":
        raise BadCallError(
            f"this is {platform_name()}, and the Linux reference is made on Linux",
            advice="leave out --as-reference, or replay on Linux",
        )
    with open_bundle(options.bundle) as bundle:
        _require_intact(bundle)
        _require_here(bundle, options)
        return make_plan(
            bundle,
            passes=options.passes,
            repeats=options.repeats,
            claims=options.claims,
            data=options.data,
        )


@contextlib.contextmanager
def _own_folder(use: DataUse) -> Iterator[Path]:
    """Give a folder for all that the replay unpacks and writes."""
    with guarded_folder("reprobundle-replay-") as folder:
        use.copied("run", folder)
        yield folder
    use.removed(folder)


def _require_here(bundle: Bundle, options: ReplayOptions) -> None:
    """Refuse one part of a bundle that lacks what this replay needs.

    Raises:
        AbsentMemberError: It lies in the other part.
    """
    for path in bundle.absent:
        is_lock = path == PYLOCK_MEMBER and options.environment == "fresh"
        if is_lock or bundle.members[path].role in NEEDED_ROLES:
            bundle.content(path)


def _require_intact(bundle: Bundle) -> None:
    for damage in check_digests(bundle):
        raise DigestError(
            f"{damage.path} bytes {damage.byte_start}-{damage.byte_end}",
            expected=damage.expected,
            got=damage.got,
            rule="V4",
        )


def replay(options: ReplayOptions, plan: ReplayPlan, *, say: Say) -> Replayed:
    """Run what `plan` says and attach one record for each run.

    Args:
        options: The call; consent to run foreign code has been given.
        plan: From `inspect_plan` of the same file.
        say: Takes one line about what happens now.

    Raises:
        EnvironmentUnusableError: No environment could be made for it.
        BundleError: The bundle changed since it was planned.
        SensitiveContentError: The record or what belongs to it looks sensitive.
    """
    target = options.record_file or options.bundle
    require_writable(target.parent)
    if target.exists() and not os.access(target, os.W_OK):
        raise EnvironmentUnusableError(
            f"the record could not be attached: {str(target)!r} is read-only",
            advice="write the record beside it: --record FILE.rpr.zip",
        )
    use = data_use(options, plan)
    use.copied("bundle", options.bundle)
    with _own_folder(use) as folder:
        job = ReplayJob(options, plan, folder, say, use)
        job.prepare()
        records = job.run_all()
        ids = job.keep(records)
    report = verify_bundle(
        options.bundle,
        # Nobody would see what an experiment came to: it decides nothing.
        only=ids if job.experiment else (),
        replay_file=options.record_file,
        allow=options.allow,
    )
    return Replayed(report=report, replay_ids=ids, drift=job.drift)
