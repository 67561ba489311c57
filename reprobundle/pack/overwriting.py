"""Whether a new bundle may take the place of a file that is there already."""

from __future__ import annotations

from pathlib import Path

from reprobundle.errors import BundleError, PackRefusedError
from reprobundle.format.reader import open_bundle

_ADVICE = "write to another file with -o, or add --force to lose them"


def refuse_overwriting(output: Path, *, force: bool) -> None:
    """Refuse to write over what cannot be made again.

    A bundle that nobody has replayed is made again by packing again. Replays and
    signatures are other people's work; and what cannot be read may hold them.

    Args:
        output: The bundle to write.
        force: Whether the caller accepts the loss.

    Raises:
        PackRefusedError: There is something to lose, and `force` is not given.
    """
    if force or not output.exists():
        return
    try:
        with open_bundle(output) as bundle:
            replays, signed = len(bundle.replay_ids), bool(bundle.signatures)
            accepted = bool(bundle.acceptance_ids)
    except BundleError as error:
        raise PackRefusedError(
            f"{output.name} is there and cannot be read as a bundle, so what would be "
            f"lost is not known: {error.message}",
            advice=_ADVICE,
        ) from error
    if replays or signed or accepted:
        plural = "" if replays == 1 else "s"
        held = [f"{replays} replay{plural}"]
        held += ["acceptance records"] if accepted else []
        held += ["signatures"] if signed else []
        raise PackRefusedError(
            f"{output.name} is there and holds {' and '.join(held)}, "
            "which would be lost",
            advice=_ADVICE,
        )
