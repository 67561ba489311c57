"""What an executed notebook shows, cell by cell, without what no run repeats.

Compared are each cell's type and source, and its outputs by kind of content: texts line
by line with their decimal numbers apart, images and other binary content by digest,
errors by name and value. Left out are execution counts, ids, metadata, tracebacks and
widgets, and addresses of objects in texts: they differ in every run. Cells are numbered
from one, text cells included, as in the places of errors (spec.md, "Comparison").
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from reprobundle.errors import UnreadableOutputError
from reprobundle.format.digests import digest_bytes
from reprobundle.outputs.cells import Cell, read_cell
from reprobundle.outputs.documents import Leaf, flatten
from reprobundle.outputs.text import split_numbers

# Where Python prints an address: "<Net object at 0x7f…>", "<cdata 'int *' 0x55…>". A
# hexadecimal number that stands elsewhere may be a result, such as a checksum.
_ADDRESS = re.compile(
    r"(?<=\bat )0x[0-9a-fA-F]{6,}\b|(?<=<)([^<>\n]{1,200}?)\b0x[0-9a-fA-F]{6,}(?=>)"
)
_WIDGET = "application/vnd.jupyter.widget"
_TEXTS = ("text/", "image/svg", "application/javascript")

Place = tuple[int, ...]


def is_notebook(document: object) -> bool:
    """Whether a JSON document has the cells of notebook format 4."""
    return isinstance(document, dict) and isinstance(document.get("cells"), list)


def notebook_leaves(document: dict[str, Any]) -> Iterator[Leaf]:
    """Yield what the cells of a notebook hold, in order.

    Raises:
        UnreadableOutputError: A cell or an output has not the form of format 4.
    """
    for number, cell in enumerate(document["cells"], start=1):
        try:
            yield from _cell(cell, number)
        except (AttributeError, KeyError, TypeError) as error:
            message = f"cell {number} is not of notebook format 4"
            raise UnreadableOutputError(message) from error


def _cell(cell: dict[str, Any], number: int) -> Iterator[Leaf]:
    kind = _text(cell["cell_type"])
    yield _leaf("cell_type", (number,), Cell("text", kind))
    yield _leaf("source", (number,), Cell("text", _text(cell["source"])))
    if kind == "code":
        for position, output in enumerate(_joined(cell["outputs"]), start=1):
            yield from _output(output, (number, position))


def _joined(outputs: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the outputs; pieces of one stream that follow each other are one.

    Where a stream is cut depends on the moment at which the kernel sent it.
    """
    for name, pieces in groupby(outputs, _stream_name):
        if name is None:
            yield from pieces
            continue
        first, *rest = pieces
        texts = [_text(piece["text"]) for piece in (first, *rest)]
        yield {**first, "text": "".join(texts)}


def _stream_name(output: dict[str, Any]) -> str | None:
    """Return the name of the stream that an output is a piece of, if it is one."""
    return _text(output["name"]) if output["output_type"] == "stream" else None


def _output(output: dict[str, Any], place: Place) -> Iterator[Leaf]:
    kind = output["output_type"]
    yield _leaf("outputs[].output_type", place, Cell("text", _text(kind)))
    if kind == "stream":
        yield from _lines(_text(output["name"]), _text(output["text"]), place)
    elif kind == "error":
        yield _leaf("outputs[].ename", place, Cell("text", _text(output["ename"])))
        yield from _lines("evalue", _text(output["evalue"]), place)
    else:
        for mime, content in sorted(output["data"].items()):
            if not mime.startswith(_WIDGET):
                yield from _content(mime, content, place)


def _content(mime: str, content: object, place: Place) -> Iterator[Leaf]:
    if mime.endswith("json"):
        # Structured content keeps its own form.
        column = f"cells[].outputs[].{mime}"
        yield from flatten(content, ("outputs", mime), column, place)
    elif mime.startswith(_TEXTS):
        yield from _lines(mime, _text(content), place)
    else:
        digest = Cell("text", f"blake3 {digest_bytes(_binary(_text(content)))}")
        yield _leaf(f"outputs[].{mime}", place, digest)


def _binary(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return text.encode("utf-8", "surrogatepass")


def _lines(part: str, text: str, place: Place) -> Iterator[Leaf]:
    """Yield each line as its words, and each of its numbers by itself."""
    for position, line in enumerate(text.splitlines(), start=1):
        words, numbers = split_numbers(_ADDRESS.sub(_masked, line))
        where = (*place, position)
        yield _leaf(f"outputs[].{part}[]", where, Cell("text", words))
        for order, number in enumerate(numbers, start=1):
            yield _leaf(
                f"outputs[].{part}[].numbers[]", (*where, order), read_cell(number)
            )


def _masked(found: re.Match[str]) -> str:
    return f"{found[1] or ''}#"


def _leaf(part: str, place: Place, cell: Cell) -> Leaf:
    keys = tuple(part.replace("[]", "").split("."))
    return Leaf(keys, f"cells[].{part}", place, cell)


def _text(value: object) -> str:
    """Return a text that the format may write as a list of lines."""
    if isinstance(value, list):
        value = "".join(value)
    if not isinstance(value, str):
        message = f"a text expected, got {type(value).__name__}"
        raise TypeError(message)
    return value
