"""Set the switches of torch that a replay asked for, and answer what a script asks.

A switch is set right after torch was imported: a script that sets it too has the last
word, and the facts read at the end of the run show that.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os

from .facts import send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .session import Session

_USUAL = {"shapes": "dynamic", "round": "full"}


class Asked:
    """What the replay asked of this process."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._heard: set[str] = set()

    def set_switches(self, torch: Any) -> None:
        """Set every switch; one that this torch lacks is reported."""
        for name, value in self._session.switches.items():
            self._session.attempt(f"switch {name}", _set, torch, name, value)

    def word(self, name: str) -> str:
        """Return the word asked for as `name`, and note that the script listens."""
        word = os.environ.get(f"REPROBUNDLE_{name.upper()}") or _USUAL[name]
        if name not in self._heard:
            self._heard.add(name)
            probe = (f"heard.{name}", "the script", lambda: word)
            self._session.attempt("heard", send, self._session, [probe])
        return word


def _set(torch: Any, name: str, value: str) -> None:
    """Set one switch by the names that every torch from 2.9 to 2.15 has.

    The older of the two ways to say TF32 is taken on purpose: it sets both, while a
    script that reads the older one after the newer was set is refused by torch
    (ATen/Context.cpp).
    """
    on = value == "true"
    backends = torch.backends
    if name == "allow_tf32":
        backends.cuda.matmul.allow_tf32 = on
        backends.cudnn.allow_tf32 = on
    elif name == "matmul_precision":
        torch.set_float32_matmul_precision(value)
    elif name == "reduced_precision_sums":
        backends.cuda.matmul.allow_fp16_reduced_precision_reduction = on
        backends.cuda.matmul.allow_bf16_reduced_precision_reduction = on
    elif name == "deterministic":
        # The public function also imports torch's compiler, which is seconds of work
        # and binds names before our hooks stand. A variable tells the compiler.
        torch._C._set_deterministic_algorithms(
            value != "false", warn_only=value == "warn"
        )
    elif name == "benchmark":
        backends.cudnn.benchmark = on
    else:
        message = f"the recorder knows no switch {name}"
        raise ValueError(message)
