"""What a replay asks its command to do otherwise, so that one thing differs.

Three ways lead there. A *variable* of a numeric library is set before the command
starts. A *switch* of torch is set by the recorder right after torch was imported, so
that a script which sets it itself still has the last word, and the record tells so. A
*request* (constant shapes, a minimal round) is a word that the command is told, as
``{shapes}`` or ``{round}`` in its arguments, as a variable, or by a function of
`reprobundle`; what it makes of it is its own affair.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reprobundle.errors import BadCallError
from reprobundle.format.record import Fact
from reprobundle.run.command import NUMERIC_VARIABLES

SHAPES = ("constant", "dynamic")
ROUNDS = ("full", "minimal")
# What a request is where nobody asked: the course the author wrote.
USUAL = {"shapes": "dynamic", "round": "full"}

_TRUTH = ("true", "false")

# Switch → the values it takes; none stands for a number of threads.
SWITCHES: Mapping[str, tuple[str, ...]] = {
    "allow_tf32": _TRUTH,
    "matmul_precision": ("highest", "high", "medium"),
    "reduced_precision_sums": _TRUTH,
    "deterministic": ("true", "false", "warn"),
    "benchmark": _TRUTH,
    "threads": (),
    "fast_math": _TRUTH,
    "cpu_capability": ("default", "avx2", "avx512"),
}

# What is read once, when a library is loaded, has to be a variable from the start.
# torch.use_deterministic_algorithms asks for the cuBLAS one (torch/__init__.py).
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_BY_VARIABLE = ("threads", "fast_math", "cpu_capability")


@dataclass(frozen=True)
class Asked:
    """What a run was asked to do otherwise.

    Attributes:
        variables: Variables of numeric libraries, as given.
        switches: Named switches, as given.
        requests: ``shapes`` and ``round``, where one was asked for.
        packages: ``NAME==VERSION`` of packages put in the place of others.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    switches: Mapping[str, str] = field(default_factory=dict)
    requests: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, str]:
        """Every variable of a numeric library that the run has to have."""
        return {**_variables_of(self.switches), **self.variables}

    @property
    def of_recorder(self) -> dict[str, str]:
        """The switches that the recorder sets in the process itself."""
        return {
            name: value
            for name, value in self.switches.items()
            if name not in _BY_VARIABLE
        }

    @property
    def told(self) -> dict[str, str]:
        """The variables by which the command is told the requests."""
        return {
            f"REPROBUNDLE_{name.upper()}": value
            for name, value in self.requests.items()
        }

    def applied(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return `argv` with ``{shapes}`` and ``{round}`` replaced."""
        words = {**USUAL, **self.requests}
        for name, word in words.items():
            argv = tuple(part.replace(f"{{{name}}}", word) for part in argv)
        return argv

    def facts(self) -> dict[str, Fact]:
        """Return what the record says about it: a fact ``asked.NAME`` for each."""
        everything = {**self.variables, **self.switches, **self.requests}
        facts = {
            f"asked.{name}": Fact(value=value, source="replay")
            for name, value in everything.items()
        }
        for package in self.packages:
            name, _, version = package.partition("==")
            facts[f"asked.with.{name}"] = Fact(value=version, source="replay")
        return facts


NOTHING = Asked()


def parse_asked(
    settings: Iterable[str],
    *,
    shapes: str = "",
    round_: str = "",
    packages: tuple[str, ...] = (),
) -> Asked:
    """Return what ``--set``, ``--shapes``, ``--round`` and ``--with`` ask for.

    Raises:
        BadCallError: A text is not of that form, a name is unknown, or a switch does
            not take that value.
    """
    variables: dict[str, str] = {}
    switches: dict[str, str] = {}
    for text in settings:
        name, separator, value = text.partition("=")
        if not separator or name not in (*NUMERIC_VARIABLES, *SWITCHES):
            raise BadCallError(
                f"--set takes NAME=VALUE of a switch or a library, got {text!r}",
                advice=f"choose from {', '.join((*SWITCHES, *NUMERIC_VARIABLES))}",
            )
        if name in SWITCHES:
            switches[name] = _switch_value(name, value)
        else:
            variables[name] = value
    asked = {"shapes": _word(shapes, SHAPES), "round": _word(round_, ROUNDS)}
    return Asked(
        variables=variables,
        switches=switches,
        requests={name: word for name, word in asked.items() if word},
        packages=tuple(map(_pinned, packages)),
    )


def _switch_value(name: str, value: str) -> str:
    taken = SWITCHES[name]
    plain = value.lower()
    if taken and plain in taken:
        return plain
    if not taken and re.fullmatch(r"[1-9][0-9]{0,3}", plain):
        return plain
    what = ", ".join(taken) or "a number of threads from 1 to 9999"
    raise BadCallError(f"--set {name} takes {what}, got {value!r}")


def _word(word: str, known: tuple[str, ...]) -> str:
    if word and word not in known:
        raise BadCallError(f"{word!r} is none of {', '.join(known)}")
    return word


def _pinned(text: str) -> str:
    if not re.fullmatch(
        r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.+!_-]*", text
    ):
        raise BadCallError(f"--with takes PACKAGE==VERSION, got {text!r}")
    return text


def _variables_of(switches: Mapping[str, str]) -> dict[str, str]:
    variables: dict[str, str] = {}
    if "threads" in switches:
        variables.update(dict.fromkeys(_THREADS, switches["threads"]))
    if "fast_math" in switches:
        on = switches["fast_math"] == "true"
        variables["PYTORCH_MPS_FAST_MATH"] = "1" if on else "0"
    if "cpu_capability" in switches:
        variables["ATEN_CPU_CAPABILITY"] = switches["cpu_capability"]
    if switches.get("deterministic") == "true":
        variables["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
        variables["TORCHINDUCTOR_DETERMINISTIC"] = "1"
    return variables
