import io

import pytest

from reprobundle.errors import UnreadableOutputError
from reprobundle.outputs.tables import open_table


def read(data, file_format="csv"):
    with open_table(io.BytesIO(data), file_format) as table:
        return table.columns, list(table.rows)


def test_the_first_row_is_the_header_unless_it_holds_a_number():
    assert read(b"a,b\n1,2\n") == (("a", "b"), [["1", "2"]])
    assert read(b"1,2\n3,4\n") == (("1", "2"), [["1", "2"], ["3", "4"]])


def test_two_columns_of_one_name_get_numbers():
    assert read(b"loss,loss\n1,2\n")[0] == ("loss", "loss#2")


def test_quotes_byte_order_marks_and_blank_lines_are_understood():
    data = '\ufeffname,note\r\n"a,b","say ""x"""\r\n\r\n'.encode()
    assert read(data) == (("name", "note"), [["a,b", 'say "x"']])


def test_tabs_separate_a_tsv():
    assert read(b"a\tb\n1,5\t2\n", "tsv") == (("a", "b"), [["1,5", "2"]])


def test_an_empty_file_is_a_table_without_columns():
    assert read(b"") == ((), [])


@pytest.mark.parametrize("data", [b"a,b\n1\n", b"a,b\n\xff,1\n", b'a\n"b\n'])
def test_a_broken_table_is_refused(data):
    with pytest.raises(UnreadableOutputError):
        read(data)


def test_an_endless_line_is_refused(monkeypatch):
    monkeypatch.setattr("reprobundle.outputs.tables.LONGEST_LINE", 8)
    with pytest.raises(UnreadableOutputError, match="longer than"):
        read(b"a,b\n" + b"1" * 9 + b",2\n")


def test_the_callers_stream_stays_open():
    stream = io.BytesIO(b"a\n1\n")
    with open_table(stream, "csv") as table:
        list(table.rows)
    assert not stream.closed
