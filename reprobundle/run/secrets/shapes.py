"""The shapes of known tokens, from what each vendor documents about its own.

Each shape has a literal that every token of it holds: text without the literal is
never searched by the expression. All repetitions are bounded and none is nested, so
the time is linear in the text whatever it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from reprobundle.run.secrets.runs import Words

# Between letters of base64 a shape is chance: pictures in notebooks, tensors, hashes.
_START = rb"(?<![A-Za-z0-9+/_-])"
_END = rb"(?![A-Za-z0-9+/_-])"


class Shape(NamedTuple):
    """One kind of token.

    Attributes:
        kind: Its name in messages and for ``--allow-sensitive``.
        literals: One of them is part of every such token.
        pattern: The whole token; its group ``value``, if it has one, is the secret.
    """

    kind: str
    literals: tuple[bytes, ...]
    pattern: re.Pattern[bytes]


def _token(kind: str, literals: tuple[bytes, ...], body: bytes) -> Shape:
    return Shape(kind, literals, re.compile(_START + body + _END))


SHAPES: tuple[Shape, ...] = (
    _token(
        "github-token",
        (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"),
        rb"gh[pousr]_[A-Za-z0-9]{36,255}",
    ),
    _token("github-token", (b"github_pat_",), rb"github_pat_[A-Za-z0-9_]{60,255}"),
    _token(
        "gitlab-token",
        (b"glpat-", b"gldt-", b"glrt-", b"glptt-"),
        rb"gl(?:pat|dt|rt|ptt)-[A-Za-z0-9_.-]{20,255}",
    ),
    _token("huggingface-token", (b"hf_",), rb"hf_[A-Za-z0-9]{30,60}"),
    _token("anthropic-key", (b"sk-ant-",), rb"sk-ant-[a-z0-9]{3,12}-[\w-]{60,160}"),
    _token(
        "openai-key", (b"sk-proj-", b"sk-svcacct-"), rb"sk-[a-z]{4,8}-[\w-]{40,220}"
    ),
    _token("openai-key", (b"T3BlbkFJ",), rb"sk-[\w-]{20,100}T3BlbkFJ[\w-]{20,100}"),
    _token("aws-key", (b"AKIA", b"ASIA"), rb"A[KS]IA[A-Z2-7]{16}"),
    _token("google-key", (b"AIza",), rb"AIza[\w-]{35}"),
    _token("google-key", (b"GOCSPX-",), rb"GOCSPX-[\w-]{28}"),
    _token("google-key", (b"ya29.",), rb"ya29\.[\w-]{30,400}"),
    Shape(
        "azure-key",
        (b"AccountKey=", b"SharedAccessKey="),
        re.compile(rb"SharedAccessKey=[A-Za-z0-9+/]{43}=|AccountKey=[\w+/]{86}=="),
    ),
    _token("slack-token", (b"xox",), rb"xox[abeoprs]-[A-Za-z0-9-]{20,255}"),
    Shape(
        "slack-token",
        (b"hooks.slack.com/",),
        re.compile(rb"hooks\.slack\.com/services/T\w{8,12}/B\w{8,12}/\w{20,30}"),
    ),
    _token("stripe-key", (b"_live_",), rb"(?:sk|rk)_live_[A-Za-z0-9]{20,250}"),
    _token("stripe-key", (b"whsec_",), rb"whsec_[A-Za-z0-9]{32,64}"),
    _token("pypi-token", (b"pypi-Ag",), rb"pypi-Ag[\w-]{60,400}"),
    _token("npm-token", (b"npm_",), rb"npm_[A-Za-z0-9]{36}"),
    _token("wandb-key", (b"wandb_v1_",), rb"wandb_v1_[\w-]{30,120}"),
    Shape(
        "private-key",
        (b"PRIVATE KEY",),
        # Lines of a real key follow; a sentence about keys has none.
        re.compile(
            rb"-----BEGIN [A-Z ]{0,24}PRIVATE KEY(?: BLOCK)?-----"
            rb"(?:[\s\"',]|\\n){1,8}(?:[\w-]{1,20}: [^\n]{1,80}\n){0,4}\s{0,4}"
            rb"[A-Za-z0-9+/]{40}"
        ),
    ),
    _token("jwt", (b"eyJ",), rb"eyJ[\w-]{10,2000}\.eyJ[\w-]{10,4000}\.[\w-]{20,600}"),
    Shape(
        "url-password",
        (b"://",),
        re.compile(
            rb"://[^\s/:@'\"<>\\?#]{0,64}:(?P<value>[^\s/@'\"<>\\]{3,200})"
            rb"@(?P<host>[\w\[.:-]{1,200})"
        ),
    ),
)

# Examples that vendors and standards print in their own documentation.
DOCUMENTED = (
    b"EXAMPLE",
    b"Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1",  # the storage emulator of Azure
    b"SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",  # the introduction to JWT
    b"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",  # RFC 7519, RFC 7515 A.1
)

_PLACEHOLDER = re.compile(
    rb"(?i)example|change.?me|your|xxx|placehold|dummy|fake|sample|redact|mask|todo|"
    rb"insert|secret|passw|token|<|>|\*\*|\.\.\.|\$|\{|%[(s]|12345|abcdef|none|null|"
    rb"undefined|test|environ|getenv|config|foobar|hunter2|my.?key|api.?key"
)


_TOKEN_CHARACTERS = (
    b"+-./0123456789=ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
)
# The shortest token is a key of AWS.
_LONG = Words(_TOKEN_CHARACTERS, 20)
# Of these not every token holds one in a long word, so all of the text is looked at.
_ANYWHERE = frozenset({b"PRIVATE KEY", b"://", b"sk-proj-", b"sk-svcacct-"})


def found_shapes(text: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of each known token in `text`."""
    words = b" ".join([text[start:end] for start, end in _LONG.places(text)])
    for shape in SHAPES:
        where = text if _ANYWHERE.issuperset(shape.literals) else words
        if not any(literal in where for literal in shape.literals):
            continue
        group = "value" if "value" in shape.pattern.groupindex else 0
        for match in shape.pattern.finditer(text):
            if not _is_harmless(match[0], match[group], guarded=group == "value"):
                yield shape.kind, match.start(group), match.end(group)


def _is_harmless(whole: bytes, value: bytes, *, guarded: bool) -> bool:
    if any(example in whole for example in DOCUMENTED):
        return True
    if guarded:
        # Short words are examples; RFC 2606 keeps the domain for them.
        short = value.isalpha() and len(value) < 8
        return short or b"@example." in whole or is_placeholder(value)
    return len(set(value)) < min(len(value) // 3, 9)


def is_placeholder(value: bytes) -> bool:
    """Whether `value` stands for a secret instead of being one."""
    return bool(_PLACEHOLDER.search(value)) or len(set(value)) < 4
