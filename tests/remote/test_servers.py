"""Servers that answer otherwise, wrongly or not at all: one line, never a verdict."""

from __future__ import annotations

import base64

import pytest

from reprobundle.errors import RemoteFileError
from reprobundle.format.reader import open_listing
from reprobundle.remote import http
from reprobundle.remote.address import parse_address
from reprobundle.remote.http import HttpFetcher
from reprobundle.remote.remote_file import RemoteFile
from tests.remote.conftest import TAIL_BYTES
from tests.remote.server import serving


def one_line(err: str) -> str:
    """Return the message; there is one, and no traceback."""
    lines = [line for line in err.splitlines() if line.startswith("reprobundle: ")]
    assert len(lines) == 1
    assert "Traceback" not in err
    return lines[0]


@pytest.mark.parametrize("verb", ["inspect", "verify"])
def test_a_server_without_parts_is_refused_with_the_remedy(verb, served, bundle, call):
    served.ranges = "no"
    status, out, err = call(verb, served.url)
    assert (status, out) == (20, "")
    size = f"{bundle.stat().st_size:,}"
    assert one_line(err).endswith(
        f"the server gives the whole file only ({size} bytes), not parts of it; "
        "--download-limit SIZE fetches all of it if it is no larger"
    )


def test_a_server_without_parts_is_read_within_the_stated_limit(served, bundle, call):
    served.ranges = "no"
    status, out, err = call("verify", served.url, "--download-limit", "1MB")
    assert (status, "REPRODUCED" in out) == (0, True)
    assert served.asked[-1] == ""
    size = bundle.stat().st_size / 1024
    assert f"{size:.0f} KiB of {size:.0f} KiB" in err


@pytest.mark.parametrize("length", [True, False])
def test_not_more_than_the_stated_limit_is_fetched(length, served, call):
    served.ranges, served.length = "no", length
    status, _, err = call("inspect", served.url, "--download-limit", "100kB")
    assert status == 20
    why = "more than the 100,000 that may be fetched" if length else "more bytes came"
    assert why in one_line(err)


def test_a_limit_below_what_is_read_first_is_kept_too(bundle, call):
    with serving(bundle) as server:
        server.ranges = "no"
        status, out, err = call("inspect", server.url, "--download-limit", "10kB")
        assert (status, out) == (20, "")
        assert "more than the 10,000 that may be fetched" in one_line(err)


def test_a_limit_costs_a_server_of_parts_requests_and_no_answer(bundle, call):
    with serving(bundle) as server:
        status, out, _ = call("verify", server.url, "--download-limit", "0")
        assert (status, "REPRODUCED" in out) == (0, True)


def test_a_file_that_is_all_end_comes_whole_from_a_server_without_parts(bundle, call):
    """It is what was asked for, and a server may answer so (RFC 9110, 14.2)."""
    with serving(bundle) as server:
        server.ranges = "no"
        status, _, err = call("inspect", server.url)
        assert (status, ": 1 request, " in err) == (0, True)


def test_a_download_that_ends_early_is_no_bundle_that_was_cut(served, call):
    served.ranges, served.cut = "no", 90_000
    status, _, err = call("verify", served.url, "--download-limit", "1MB")
    assert status == 20
    assert "the answer ended after 90,000 of" in one_line(err)


def test_a_server_that_knows_no_last_bytes_is_read_all_the_same(served, call):
    served.ranges = "no-suffix"
    status, out, _ = call("verify", served.url)
    assert (status, "REPRODUCED" in out) == (0, True)
    assert served.asked[:2] == [f"bytes=-{TAIL_BYTES}", "bytes=0-0"]


def test_a_redirection_is_followed_and_counted(served, call):
    served.redirect = served.url.replace("/some/", "/final/")
    status, _, err = call("verify", served.url)
    assert status == 0
    assert f"{len(served.asked)} requests" in err
    assert len({*served.asked}) * 2 == len(served.asked)


def test_a_header_of_the_user_goes_to_the_address_alone(served, call, monkeypatch):
    from fsspec.config import conf

    headers = {"Authorization": "Bearer s3cr3t"}
    monkeypatch.setitem(conf, "http", {"headers": headers})
    with serving(served.path) as elsewhere:
        other = elsewhere.url.replace("127.0.0.1", "localhost")
        served.redirect = other.replace("/some/", "/final/")
        status, out, err = call("inspect", served.url)
    assert status == 0
    assert {one.get("Authorization") for one in served.headers} == {"Bearer s3cr3t"}
    assert {one.get("Authorization") for one in elsewhere.headers} == {None}
    assert "s3cr3t" not in out + err


def test_a_redirection_without_an_end_is_an_error(served, call):
    served.redirect = served.url
    status, _, err = call("inspect", served.url)
    assert status == 20
    assert "it leads on more than 10 times" in one_line(err)


def test_a_redirection_from_https_to_http_is_refused():
    class Answer:
        def __init__(self, scheme, *history):
            self.url = type("Url", (), {"scheme": scheme})
            self.headers = {}
            self.history = history

    secure = HttpFetcher(parse_address("https://example.org/x.rpb.zip"))
    secure._refuse_unsafe(Answer("https", Answer("https")))
    for history in ((Answer("http"),), (Answer("https"), Answer("http"))):
        with pytest.raises(RemoteFileError, match="leads from https to http"):
            secure._refuse_unsafe(Answer("https", *history))
    with pytest.raises(RemoteFileError, match="leads from https to http"):
        secure._refuse_unsafe(Answer("http", Answer("https")))
    secure.close()


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (404, "there is no such file (404); check the address"),
        (410, "there is no such file (410)"),
        (401, "the server does not let you read it (401); give what it asks for"),
        (403, "the server does not let you read it (403)"),
        (429, "the server answered with status 429; try again later"),
        (503, "the server answered with status 503; try again later"),
        (204, "the server answered with status 204"),
    ],
)
@pytest.mark.parametrize("later", [False, True])
def test_a_status_is_told(status, why, later, served, call):
    def answer(count):
        served.status = status

    if later:
        served.after = answer
        why = "was replaced or removed" if status in {404, 410} else why
    else:
        served.status = status
    ended, out, err = call("verify", served.url)
    assert (ended, out) == (20, "")
    assert why in one_line(err)


def altered(served, bundle, tmp_path):
    """Serve another file of the same size from the second request on."""
    other = tmp_path / "other.rpb.zip"
    data = bundle.read_bytes()
    other.write_bytes(data[:1000] + bytes(1000) + data[2000:])

    def change(count):
        served.path, served.etag = other, served.etag and '"two"'

    served.after = change


@pytest.mark.parametrize("honours", [True, False])
def test_a_file_replaced_between_two_requests_is_noticed(
    honours, served, bundle, tmp_path, call
):
    altered(served, bundle, tmp_path)
    if not honours:
        served.etag = 'W/"one"'  # not for If-Range, so each part of the new one comes
    status, out, err = call("verify", served.url)
    assert (status, out) == (20, "")
    assert "replaced or removed while it was read; nothing was judged" in one_line(err)


def test_a_file_replaced_is_noticed_by_its_date(served, bundle, tmp_path, call):
    altered(served, bundle, tmp_path)
    first = served.after
    served.etag, served.modified = "", "Thu, 03 Dec 2026 05:00:00 GMT"

    def change(count):
        first(count)
        served.modified = "Thu, 03 Dec 2026 05:00:01 GMT"

    served.after = change
    status, _, err = call("verify", served.url)
    assert (status, "replaced or removed" in one_line(err)) == (20, True)
    assert served.headers[1]["If-Range"] == "Thu, 03 Dec 2026 05:00:00 GMT"


def test_a_file_of_another_size_is_noticed_without_any_mark(
    served, bundle, tmp_path, call
):
    served.etag = ""
    longer = tmp_path / "longer.rpb.zip"
    longer.write_bytes(bundle.read_bytes() + b"x")

    def change(count):
        served.path = longer

    served.after = change
    status, _, err = call("verify", served.url)
    assert (status, "replaced or removed" in one_line(err)) == (20, True)


def test_without_any_mark_it_says_that_sameness_was_not_checked(served, call):
    served.etag = ""
    status, _, err = call("verify", served.url)
    assert status == 0
    assert "NOT CHECKED: whether the file stayed the same between these" in err
    served.etag = '"one"'
    assert "NOT CHECKED" not in call("verify", served.url)[2]


def test_an_answer_with_other_bytes_is_refused(served, call):
    def shift(count):
        served.shift = 64

    served.after = shift
    status, _, err = call("verify", served.url)
    assert (status, "asked for bytes" in one_line(err)) == (20, True)


def test_last_bytes_that_are_not_the_last_are_refused(served, call):
    served.shift = -64
    status, _, err = call("inspect", served.url)
    assert (status, "asked for the last 30,000 bytes, got" in one_line(err)) == (
        20,
        True,
    )


def test_a_server_that_stops_giving_parts_is_told(served, call):
    def stop(count):
        served.ranges = "no"

    served.after = stop
    status, out, err = call("verify", served.url, "--download-limit", "1MB")
    assert (status, out) == (20, "")
    assert "for a part was answered with the whole file" in one_line(err)
    assert served.sent_bytes < 400_000


def test_a_size_that_is_not_true_gives_no_verdict_but_unreadable(served, call):
    served.stated_size = 20 << 30
    status, out, _ = call("verify", served.url)
    assert (status, "UNREADABLE" in out) == (21, True)


def test_a_size_that_changes_is_a_change(served, call):
    def grow(count):
        served.stated_size = 20 << 30

    served.after = grow
    status, _, err = call("verify", served.url)
    assert (status, "replaced or removed" in one_line(err)) == (20, True)


def test_a_connection_that_breaks_off_is_taken_up_where_it_ended(
    served, call, monkeypatch
):
    monkeypatch.setattr(http, "MUCH_BYTES", 50_000)
    served.cut = 90_000
    status, out, _ = call("verify", served.url)
    assert (status, "REPRODUCED" in out) == (0, True)
    assert any(one.startswith("bytes=90000-") for one in served.asked)


def test_a_connection_that_breaks_off_again_and_again_is_given_up(served, call):
    served.cut = 5_000
    status, out, err = call("inspect", served.url)
    assert (status, out) == (20, "")
    assert "the connection broke off 3 times, last at byte" in one_line(err)
    assert len(served.asked) == 4


def test_a_server_that_falls_silent_is_not_waited_for(served):
    served.cut, served.stall = 1000, True
    address = parse_address(served.url)
    fetcher = HttpFetcher(address, timeout_s=0.2)
    with (
        RemoteFile(address, fetcher=fetcher) as remote,
        pytest.raises(RemoteFileError, match=r"no byte came for 0\.2 s; try again"),
    ):
        open_listing(remote)


def test_bytes_that_the_server_compressed_are_refused(served, call):
    served.encoding = "gzip"
    status, _, err = call("inspect", served.url)
    assert (status, "the server changes the bytes" in one_line(err)) == (20, True)
    assert served.headers[0]["Accept-Encoding"] == "identity"


def test_a_server_that_is_not_there_is_told(served, call):
    port = served.url.split(":")[2].split("/")[0]
    status, _, err = call("inspect", served.url.replace(port, "1"))
    assert status == 20
    assert "cannot connect: " in one_line(err)


def test_an_empty_file_and_a_page_are_no_bundles(served, tmp_path, call):
    served.path = tmp_path / "x"
    served.path.write_bytes(b"")
    status, _, err = call("inspect", served.url)
    assert (status, "the file is empty" in one_line(err)) == (21, True)
    served.path.write_bytes(b"<!DOCTYPE html><p>sign in</p>")
    status, _, err = call("inspect", served.url)
    assert (status, "no ZIP file but a web page" in one_line(err)) == (21, True)


@pytest.mark.parametrize("verb", ["inspect", "verify", "report", "cat", "extract"])
@pytest.mark.parametrize("trouble", ["", "refused", "redirect", "silent", "changed"])
def test_what_is_secret_in_an_address_is_shown_nowhere(
    verb, trouble, served, tmp_path, call, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    host = served.url.removeprefix("http://")
    url = f"http://ada:hunter2@{host}?X-Signature=s3cr3t#fr4gment"
    if trouble == "refused":
        served.status = 403
    elif trouble == "redirect":
        served.redirect = f"http://ada:hunter2@{host}?X-Signature=s3cr3t"
    elif trouble == "silent":
        served.cut = 0
    elif trouble == "changed":
        altered(served, served.path, tmp_path)
    more = {"cat": ("README.txt",), "extract": ("--into", "x")}.get(verb, ())
    status, out, err = call(verb, url, *more)
    # A part that came with the end was not asked for again.
    fine = not trouble or (trouble == "changed" and status == 0)
    assert status == (0 if fine else 20)
    expected = base64.b64encode(b"ada:hunter2").decode()
    assert served.headers[0]["Authorization"] == f"Basic {expected}"
    written = [it.read_text() for it in tmp_path.rglob("*.html")]
    for secret in ("hunter2", "s3cr3t", "fr4gment", "ada:", "X-Signature"):
        for text in (out, err, *written, *(it.name for it in tmp_path.iterdir())):
            assert secret not in text
