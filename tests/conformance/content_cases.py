"""The vectors of section 8.1 for content that looks alike or comes in other bytes."""

from __future__ import annotations

from collections.abc import Callable

from tests.conformance import verdict_files as files
from tests.conformance.case import Case, Result
from tests.conformance.documents import POLICY, Array, Indices, Run, Story
from tests.conformance.png_files import RGBA, png

BIT_IDENTICAL = "REPRODUCED, bit-identical"
WITHIN = "REPRODUCED, within tolerance"
DIFFERS = "NOT REPRODUCED"

ROWS = b"\x0a\x14\x1e\x28\x32\x3c", b"\x46\x50\x5a\x64\x6e\x78"
LATER = ROWS[0], b"\x46\x50\x5a\x64\x6e\x7a"
PICTURE = "plot.png"
DEEP = "deep.png"
STRICT = "verdict/image_encoded_anew"
LAX = "verdict/image_within_tolerance"


def pictured(**rule: object) -> Story:
    """Return a bundle with two images, and a rule for all outputs if it states one."""
    deep = tuple(bytes(12) for _ in range(2))
    outputs = {PICTURE: png(*ROWS), DEEP: png(*deep, depth=16)}
    rules = [{"match": "*", "reason": "a vector", **rule}] if rule else []
    policy = {**POLICY, "outputs": rules}
    return Story(runs=[(Run(outputs), {})], policy=policy)


def lax() -> Story:
    """Return the bundle whose policy admits pixels that are two steps apart."""
    rule = {"pixel": {"rtol": 0.0, "atol": 2.0}}
    return pictured(dtypes=rule)


def _case(
    name: str,
    result: Result,
    verdict: str,
    comment: str,
    make: Callable[[], bytes],
    *,
    bundle: str = "",
) -> Case:
    return Case("verdict", name, "V17", result, verdict, comment, make, (), bundle)


IMAGES = (
    _case(
        "image_encoded_anew",
        "valid",
        BIT_IDENTICAL,
        "Other filters and a text in a PNG: every pixel is identical.",
        files.attached(
            pictured(), {PICTURE: png(*ROWS, up=True, text=b"Software\0other")}
        ),
    ),
    _case(
        "image_sample",
        "invalid",
        DIFFERS,
        "One sample of a PNG is another one, and no rule names `pixel`.",
        files.alone({PICTURE: png(*LATER)}, of=pictured),
        bundle=STRICT,
    ),
    _case(
        "image_last_bit",
        "invalid",
        DIFFERS,
        "The last of 16 bits of one sample; many decoders keep 8 bits only.",
        files.alone({DEEP: png(bytes(11) + b"\1", bytes(12), depth=16)}, of=pictured),
        bundle=STRICT,
    ),
    _case(
        "image_colour_mode",
        "invalid",
        DIFFERS,
        "The same colours with an alpha channel that hides nothing.",
        files.alone(
            {
                PICTURE: png(
                    *(row[:3] + b"\xff" + row[3:] + b"\xff" for row in ROWS),
                    colour=RGBA,
                )
            },
            of=pictured,
        ),
        bundle=STRICT,
    ),
    _case(
        "image_cut_off",
        "invalid",
        DIFFERS,
        "The replay's image cannot be decoded; it is compared byte for byte.",
        files.alone({PICTURE: png(*ROWS)[:-4]}, of=pictured),
        bundle=STRICT,
    ),
    _case(
        "image_within_tolerance",
        "valid",
        WITHIN,
        "One sample is two steps off, and a rule for `pixel` admits two.",
        files.attached(lax(), {PICTURE: png(*LATER)}),
    ),
    _case(
        "image_size",
        "invalid",
        DIFFERS,
        "The same samples in rows of another length, under a rule for `pixel`.",
        files.alone({PICTURE: png(ROWS[0] + ROWS[1])}, of=lax),
        bundle=LAX,
    ),
    _case(
        "image_rule_for_numbers",
        "invalid",
        DIFFERS,
        "A tolerance for all dtypes of an output is none for pixels.",
        files.attached(
            pictured(tolerance={"rtol": 0.0, "atol": 2.0}), {PICTURE: png(*LATER)}
        ),
    ),
)

TABLE = "table.csv"
CELLS = "verdict/cells_written_otherwise"


def tabled() -> Story:
    """Return a bundle with a table, and a rule that admits any decimal number."""
    rule = {"number": {"rtol": 1.0, "atol": 1e9}}
    rules = [{"match": "*", "reason": "a vector", "dtypes": rule}]
    run = Run({TABLE: b"id,n,x\n007,3,0.5\n12e5,4,nan\n"})
    return Story(runs=[(run, {})], policy={**POLICY, "outputs": rules})


def _table(name: str, comment: str, content: bytes) -> Case:
    make = files.alone({TABLE: content}, of=tabled)
    return _case(name, "invalid", DIFFERS, comment, make, bundle=CELLS)


TABLES = (
    _case(
        "cells_written_otherwise",
        "warning",
        "REPRODUCED WITH WARNINGS",
        "A whole number as a decimal of its value, another spelling of NaN, which is "
        "reported, and a decimal number within its rule.",
        files.attached(tabled(), {TABLE: b"id,n,x\n007,3.0,0.25\n12e5,4,NaN\n"}),
    ),
    _table(
        "cell_without_its_zeros",
        "`7` where the reference has `007`: text, whatever the rule for `number`.",
        b"id,n,x\n7,3,0.5\n12e5,4,nan\n",
    ),
    _table(
        "cell_with_another_exponent",
        "`13e5` for `12e5`: without a point or a sign of the exponent it is text.",
        b"id,n,x\n007,3,0.5\n13e5,4,nan\n",
    ),
    _table(
        "cell_of_another_type",
        "`4.5` for `4`: a whole number is exact.",
        b"id,n,x\n007,3,0.5\n12e5,4.5,nan\n",
    ),
    _table(
        "cell_empty",
        "An empty cell where the reference has NaN.",
        b"id,n,x\n007,3,0.5\n12e5,4,\n",
    ),
)

SCORES, ORDER = Array((9.0, 5.25, 5.0, 4.75, 1.0)), Indices((7, 2, 4, 6, 0))
RANKED = "verdict/ties_in_another_output"


def ranked() -> Story:
    """Return a bundle with indices and their values, which are tied within 0.25."""
    rules = [
        {"match": "order.npy", "reason": "a vector", "ties": "scores.npy#"},
        {
            "match": "scores.npy",
            "reason": "a vector",
            "tolerance": {"rtol": 0.0, "atol": 0.25},
        },
    ]
    run = Run({"order.npy": ORDER, "scores.npy": SCORES})
    return Story(runs=[(run, {})], policy={**POLICY, "outputs": rules})


TIES = (
    _case(
        "ties_in_another_output",
        "valid",
        WITHIN,
        "Two indices changed places whose values, in another output, are tied.",
        files.attached(ranked(), {"order.npy": Indices((7, 4, 2, 6, 0))}),
    ),
    _case(
        "ties_across_a_chain",
        "invalid",
        DIFFERS,
        "Two indices changed places whose values are each tied with one between them, "
        "and not with each other.",
        files.alone({"order.npy": Indices((7, 6, 4, 2, 0))}, of=ranked),
        bundle=RANKED,
    ),
    _case(
        "ties_at_a_single_end",
        "invalid",
        DIFFERS,
        "Another last index; the last value is tied with none before it.",
        files.alone({"order.npy": Indices((7, 2, 4, 6, 9))}, of=ranked),
        bundle=RANKED,
    ),
)

CASES = (*IMAGES, *TABLES, *TIES)
