"""Columns of tables and keys of records that look as if they told of persons."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

ROWS = 50
LEAST_SHARE = 0.5

_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s]{1,190}\.[A-Za-z]{2,24}")
_PHONE = re.compile(r"\+?[0-9][0-9 ()./-]{6,24}")
_DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}.{0,12}")
_IBAN = re.compile(r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]{1,4}){3,8}")
_NAME = re.compile(r"[^\W\d_][^\d_@/]{1,60}")
_NUMBER = re.compile(r"[A-Za-z]{0,4}[-: ]?[0-9][0-9A-Za-z -]{1,30}")


def _whole(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text.strip()) is not None


# Name of a column, without case and signs → what its values have to look like.
_COLUMNS: dict[str, Callable[[str], bool]] = {
    **dict.fromkeys(("email", "emailaddress", "mail", "emails"), _whole(_EMAIL)),
    **dict.fromkeys(
        ("phone", "phonenumber", "telephone", "tel", "mobile", "mobilenumber", "fax"),
        _whole(_PHONE),
    ),
    **dict.fromkeys(
        ("birthdate", "dateofbirth", "dob", "birthday", "geburtsdatum"), _whole(_DATE)
    ),
    **dict.fromkeys(("iban", "bankaccount"), _whole(_IBAN)),
    **dict.fromkeys(
        (
            "firstname",
            "lastname",
            "fullname",
            "givenname",
            "familyname",
            "surname",
            "patientname",
            "customername",
            "vorname",
            "nachname",
        ),
        _whole(_NAME),
    ),
    **dict.fromkeys(
        (
            "ssn",
            "socialsecuritynumber",
            "nationalid",
            "passportnumber",
            "passport",
            "patientid",
            "mrn",
            "medicalrecordnumber",
            "insurancenumber",
        ),
        _whole(_NUMBER),
    ),
}


def personal_columns(name: str, text: str) -> Iterator[tuple[str, int]]:
    """Yield the name of each column that looks personal, and its line.

    A column counts if its name is telling and at least half of its first 50 filled
    values have the look of it: a phone with "AA" in it is a sound.

    Args:
        name: File name; its extension tells the format.
        text: Content, or its start.
    """
    suffix = name.lower().rpartition(".")[2]
    if suffix in ("csv", "tsv"):
        yield from _of_rows(_table(text, "\t" if suffix == "tsv" else None), 1)
    elif suffix in ("json", "jsonl", "ndjson"):
        yield from _of_rows(_records(text), 1)


def _of_rows(rows: Sequence[Mapping[str, str]], line: int) -> Iterator[tuple[str, int]]:
    columns = dict.fromkeys(key for row in rows for key in row)
    for column in columns:
        looks = _COLUMNS.get(re.sub(r"[\W_]", "", column).lower())
        values = [row[column] for row in rows if row.get(column)]
        if looks is None or not values:
            continue
        if sum(map(looks, values)) >= LEAST_SHARE * len(values):
            yield column, line


def _table(text: str, delimiter: str | None) -> list[dict[str, str]]:
    head = text.split("\n", 1)[0]
    if delimiter is None:
        delimiter = max(",;|\t", key=head.count)
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    rows: list[dict[str, str]] = []
    try:
        header = next(reader, [])
        for cells in reader:
            rows.append(dict(zip(header, cells, strict=False)))
            if len(rows) >= ROWS:
                break
    except csv.Error:
        pass
    return rows


def _records(text: str) -> list[dict[str, str]]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = [_parsed(line) for line in text.splitlines()[:ROWS]]
    if isinstance(document, dict):
        lists = [value for value in document.values() if isinstance(value, list)]
        document = lists[0] if len(lists) == 1 else [document]
    if not isinstance(document, list):
        return []
    return [
        {str(key): str(value) for key, value in row.items() if value is not None}
        for row in document[:ROWS]
        if isinstance(row, dict)
    ]


def _parsed(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
