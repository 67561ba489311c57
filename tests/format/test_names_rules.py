"""A name is accepted if, and only if, it keeps to each of the rules of spec.md."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reprobundle.errors import BundleError, UnsafeNameError
from reprobundle.format.names import check_name, check_names, twin_key

# Written from the table of section 5, not from the code.
DEVICES = {
    *("con", "prn", "aux", "nul", "conin$", "conout$"),
    *(f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789¹²³"),
}
HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def broken_rules(name: str) -> set[str]:
    parts = name.split("/")
    size = len(name.encode("utf-8", "surrogatepass"))
    sizes = [len(part.encode("utf-8", "surrogatepass")) for part in parts]
    stems = {part.partition(".")[0].rstrip().lower() for part in parts}
    found = {
        "R-5.1": not name,
        "R-5.2": bool(name) and bool({"", ".", ".."} & set(parts)),
        "R-5.3": "\\" in name or ":" in name,
        "R-5.4": any(unicodedata.category(one) in HIDDEN for one in name),
        "R-5.5": unicodedata.normalize("NFC", name) != name,
        "R-5.6": any(part.endswith((".", " ")) for part in parts)
        or bool(stems & DEVICES),
        "R-5.7": size > 1024 or len(parts) > 32 or max(sizes) > 255,
    }
    return {rule for rule, broken in found.items() if broken}


TRICKY = (
    *("con", "COM1", "lpt²", "nul", "conin$", ".", "..", "", " ", ":", "\\", "\0"),
    *("\x7f", "e\u0301", "é", "\u202e", "\u200b", "\u2028", "\ud800", "\u212b"),
    *("ß", "İ", "😀", "x" * 254, "é" * 127, "é" * 128, "a", ".txt", "~1", "C:"),
    *("\\\\?\\", "*", "$"),
)
tricky = st.sampled_from(TRICKY)
components = st.lists(tricky | st.text(max_size=3), max_size=3).map("".join)
names = st.lists(components, max_size=5).map("/".join)


@settings(max_examples=400, deadline=None)
@given(names)
@example("a/" * 31 + "b")
@example("a/" * 32 + "b")
@example("/".join(["x" * 255] * 4))
@example("/".join(["x" * 255] * 4) + "yy")
@example("aux .h")
@example("com¹.tar.gz")
@example("COM10")
@example("nul/a")
def test_a_name_passes_exactly_if_it_breaks_no_rule(name):
    broken = broken_rules(name)
    if not broken:
        check_name(name)
        return
    with pytest.raises(UnsafeNameError) as caught:
        check_name(name)
    assert caught.value.rule in broken
    assert str(caught.value).isprintable()


def test_every_device_is_refused_with_any_ending_and_case():
    for device in DEVICES:
        for name in (device, device.upper(), f"{device}.txt", f"a/{device} .tar.gz"):
            with pytest.raises(UnsafeNameError, match=r"R-5\.6"):
                check_name(name)


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(listed=st.lists(names, min_size=1, max_size=6))
def test_what_passes_together_makes_one_file_each_and_none_outside(
    listed, tmp_path_factory
):
    kept: list[str] = []
    for name in listed:
        try:
            check_names([*kept, name])
        except BundleError:
            continue
        kept.append(name)
    folder = tmp_path_factory.mktemp("out")
    inner = folder / "inner"
    inner.mkdir()
    for name in kept:
        path = inner / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb"):
            pass
    made = [one for one in folder.rglob("*") if one.is_file()]
    assert len(made) == len(kept)
    assert all(inner in one.parents for one in made)


def test_whatever_differs_by_case_or_form_alone_is_one_name():
    """Each letter of the first 65,536, as APFS and NTFS would merge its spellings."""
    for number in [*range(0x20, 0xD800), *range(0xE000, 0x10000)]:
        letter = chr(number)
        for other in (letter.upper(), letter.lower(), letter.title()):
            # Full and simple mappings differ: ŉ is ʼN in capitals, two letters.
            if len(other) == 1 and other.lower() == letter.lower():
                assert twin_key(letter) == twin_key(other), f"U+{number:04X}"
        for form in ("NFC", "NFD"):
            assert twin_key(unicodedata.normalize(form, letter)) == twin_key(letter)
