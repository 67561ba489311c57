import pytest

from reprobundle.report.layout import LONGEST_TEXT, Column, flow, paragraph, table
from reprobundle.report.screen import Line, Screen, Span


def shown(lines: list[Line], screen: Screen) -> list[str]:
    return screen.text(lines).split("\n")


def screen(width: int) -> Screen:
    return Screen(width=width)


COLUMNS = (Column("output", least=8), Column("outside", align="right"))


def test_numbers_stand_to_the_right_below_their_heading():
    narrow = screen(40)
    rows = [(Span("a.npy"), Span("7")), (Span("数据.npy"), Span("20,000"))]
    assert shown(table(narrow, COLUMNS, rows), narrow) == [
        "  output    outside",
        "  a.npy           7",
        "  数据.npy   20,000",
    ]


def test_a_column_that_may_shrink_does_so_before_the_table_breaks_up():
    narrow = screen(28)
    rows = [(Span("experiments/17/logits.npy"), Span("7"))]
    assert shown(table(narrow, COLUMNS, rows), narrow) == [
        "  output             outside",
        "  exper…/logits.npy        7",
    ]


def test_a_column_that_wraps_goes_on_below_itself_and_loses_no_word():
    narrow = screen(30)
    columns = (Column("check"), Column("why", least=8, wraps=True), Column("n"))
    rows = [
        (Span("macos"), Span("14.0 or newer for torch 2.13"), Span("1")),
        (Span("clock"), Span("agrees"), Span("2")),
    ]
    assert shown(table(narrow, columns, rows), narrow) == [
        "  check  why                 n",
        "  macos  14.0 or newer for   1",
        "         torch 2.13",
        "  clock  agrees              2",
    ]


def test_a_table_too_wide_for_its_screen_becomes_blocks():
    narrow = screen(16)
    rows = [(Span("experiments/17/logits.npy"), Span("7"))]
    assert shown(table(narrow, COLUMNS, rows), narrow) == [
        "  expe…ogits.npy",
        "    outside 7",
    ]


def test_a_hostile_cell_can_neither_break_a_row_nor_shift_a_column():
    plain = screen(60)
    rows = [(Span("a\nb\x1b[31m\u202e"), Span("1")), (Span("x"), Span("2"))]
    lines = shown(table(plain, COLUMNS, rows), plain)
    assert lines[1:] == [
        "  a\\nb\\x1b[31m\\u202e        1",
        "  x                         2",
    ]


def test_a_cell_of_a_megabyte_is_cut():
    plain = screen(60)
    lines = shown(table(plain, COLUMNS, [(Span("x" * 10**6), Span("1"))]), plain)
    assert max(map(len, lines)) == 60


def test_only_the_first_line_of_a_paragraph_reaches_the_left_edge():
    narrow = screen(40)
    lines = shown(paragraph(narrow, "why", "one " * 20), narrow)
    assert lines[0].startswith("why           one one")
    assert len(lines) > 1
    assert all(line.startswith(" " * 14) for line in lines[1:])


def test_a_paragraph_is_cut_unless_it_is_asked_for_whole():
    wide = screen(120)
    cut = shown(paragraph(wide, "", "x " * 5_000), wide)
    assert sum(len(line.strip()) for line in cut) <= LONGEST_TEXT
    whole = screen(120)
    lines = shown(paragraph(whole, "", "x " * 5_000, whole=True), whole)
    assert sum(line.count("x") for line in lines) == 5_000


def test_items_flow_and_are_never_broken():
    narrow = screen(32)
    items = [(Span("+ "), Span(name)) for name in ("structure", "names", "manifest")]
    assert shown(flow(narrow, "checks", items), narrow) == [
        "checks        + structure",
        "              + names",
        "              + manifest",
    ]


@pytest.mark.parametrize("width", [32, 60, 120])
def test_an_item_longer_than_the_line_is_shortened(width):
    narrow = screen(width)
    lines = shown(flow(narrow, "file", [(Span("n" * 500),)]), narrow)
    assert [len(line) for line in lines] == [width]
