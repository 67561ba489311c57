"""Decide what a project's findings mean for a move to a Mac, by rules in one order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reprobundle.format.scan_report import Action, ScanFinding
from reprobundle.port.scan.packages import distribution

_SCRIPTS = frozenset({"launcher", "job-script"})


def choose_action(
    findings: Iterable[ScanFinding], *, whole: bool
) -> tuple[Action, str, str]:
    """Return what to do, the name of the rule that says so, and its reason.

    Args:
        findings: All findings.
        whole: Whether all code could be read.
    """
    found = list(findings)
    blockers = [one for one in found if one.standing == "blocker"]
    kept = _keep([one for one in blockers if one.rule not in _SCRIPTS])
    if kept is not None:
        return kept
    if one := next((b for b in blockers if b.level == "distributed"), None):
        reason = (
            f"jobs on several GPUs stay on Linux ({one.place}); one-device runs can "
            "move, and want tests of their own on MPS"
        )
        return "dual-track", "jobs-on-linux", reason
    if blockers:
        reason = (
            f"places that stop the program as it is: {len(blockers)}, each with a "
            "remedy; test MPS and CUDA separately afterwards"
        )
        return "refactor", "replaceable", reason
    return _free(found, whole=whole)


def _keep(code: Sequence[ScanFinding]) -> tuple[Action, str, str] | None:
    if one := next((b for b in code if b.level == "own-kernels"), None):
        reason = (
            f"own GPU code runs in any case ({one.place}); writing it for MPS is a "
            "project of its own"
        )
        return "keep-linux-gpu", "own-kernels", reason
    if one := next((b for b in code if b.level == "distributed"), None):
        reason = f"the program needs several GPUs in any case ({one.place})"
        return "keep-linux-gpu", "distributed", reason
    if one := next((b for b in code if _irreplaceable(b)), None):
        reason = (
            f"{one.term} is needed in any case ({one.place}), and nothing on a Mac "
            "does its work"
        )
        return "keep-linux-gpu", "no-replacement", reason
    return None


def _free(found: Sequence[ScanFinding], *, whole: bool) -> tuple[Action, str, str]:
    if not whole:
        reason = "nothing was found that blocks, but not all code could be read"
        return "not-decided", "not-whole", reason
    deep = [f for f in found if f.level in {"own-kernels", "distributed"}]
    if one := next((f for f in deep if f.standing == "guarded"), None):
        reason = f"what needs CUDA is guarded ({one.place}); both paths want tests"
        return "dual-track", "guarded-path", reason
    if one := next((f for f in deep if f.standing == "late"), None):
        reason = (
            f"what needs CUDA waits for a call ({one.place}); whether it comes shows "
            "when the program runs, and both paths want tests"
        )
        return "dual-track", "guarded-path", reason
    reason = "nothing that blocks was found by reading; only a run on a Mac shows more"
    return "nothing-found", "nothing-blocks", reason


def _irreplaceable(found: ScanFinding) -> bool:
    package = distribution(found.term)
    return (
        found.rule in {"cuda-package", "cuda-requirement"}
        and package is not None
        and not package.replaceable
    )
