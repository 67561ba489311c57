"""What a replay takes out of the bundle before anything runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from reprobundle.errors import EnvironmentUnusableError
from reprobundle.format.manifest import Role
from reprobundle.format.reader import extract, open_bundle
from reprobundle.replay.draw_source import kept_draws
from reprobundle.replay.plan import ReplayPlan
from reprobundle.run.project import Stage
from reprobundle.verify.sealed import POLICY

NEEDED_ROLES: frozenset[Role] = frozenset({"project", "input", "stand-in", "external"})
"""Roles of the members that a replay starts from."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Extracted:
    """Files of the bundle, in a folder of their own.

    Attributes:
        folder: Holds members by their paths, but for those of the project.
        stage: The project's files under their own names.
        staged: Staged name → BLAKE3.
        samples: Withheld file → the sample in its place.
        sealed: BLAKE3 → sealed member of a run, to which equal outputs refer.
        policy_digest: BLAKE3 of the policy, from which sampled places follow.
    """

    folder: Path
    stage: Stage
    staged: Mapping[str, str]
    samples: Mapping[str, Path]
    sealed: Mapping[str, str]
    policy_digest: str


def extract_files(bundle_path: Path, plan: ReplayPlan, folder: Path) -> Extracted:
    """Extract what the planned runs need.

    Raises:
        BundleError: The bundle is unreadable, unsafe or altered.
        EnvironmentUnusableError: It is another bundle than the one that was planned.
    """
    raw = folder / "bundle"
    with open_bundle(bundle_path) as bundle:
        if bundle.id != plan.bundle:
            raise EnvironmentUnusableError(
                f"{bundle_path.name} changed since it was checked",
                advice="start the replay again",
            )
        members = bundle.members
        wanted = [
            member.path for member in members.values() if member.role in NEEDED_ROLES
        ]
        extract(bundle, raw, paths=[*wanted, *kept_draws(plan)])
        sealed = {
            member.blake3: member.path
            for member in members.values()
            if member.path.startswith("runs/") and member.size_bytes
        }
        return Extracted(
            folder=raw,
            stage=_stage(plan, raw, folder / "stage"),
            staged={name: members[path].blake3 for path, name in plan.names.items()},
            samples={name: raw / member for name, member in plan.samples.items()},
            sealed=sealed,
            policy_digest=members[POLICY].blake3,
        )


def _stage(plan: ReplayPlan, raw: Path, folder: Path) -> Stage:
    stage = Stage(folder=folder)
    stage.folder.mkdir()
    for member, name in sorted(plan.names.items()):
        goal = stage.folder / name
        goal.parent.mkdir(parents=True, exist_ok=True)
        (raw / member).rename(goal)
        stage.names.append(name)
    return stage
