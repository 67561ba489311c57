"""The HTML report in a browser: it loads offline, says nothing on the console, is seen.

Chromium runs headless; what it prints is the page after loading, and its log holds
every console message.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import zlib

import pytest

from reprobundle.report.html import render_html
from tests.conftest import NEEDS
from tests.report import pages

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    target = folder / "report.html"
    target.write_text(
        render_html(pages.page_of(pages.different(folder))), encoding="utf-8"
    )
    return target


def browse(page, *options):
    """Return what the browser printed and logged."""
    program = next(filter(None, map(shutil.which, NEEDS["browser"][0])))
    command = [
        program,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--enable-logging=stderr",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={page.parent / 'profile'}",
        "--window-size=1000,1400",
        *options,
        page.as_uri(),
    ]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True
    )
    return ended.stdout, ended.stderr


@pytest.fixture(scope="module")
def loaded(page):
    return browse(page, "--dump-dom")


def test_it_loads_without_a_word_on_the_console(loaded):
    _, log = loaded
    assert not re.findall(r".*CONSOLE.*", log)


def test_a_console_message_would_be_seen(page):
    broken = page.with_name("broken.html")
    text = page.read_text(encoding="utf-8")
    broken.write_text(text.replace("</body>", "<script>x</script></body>"))
    assert "CONSOLE" in browse(broken, "--dump-dom")[1]


def test_the_browser_read_the_whole_page(loaded):
    document, _ = loaded
    assert "<title>NOT REPRODUCED: digits.rpb.zip</title>" in document
    assert document.rstrip().endswith("</html>")
    assert document.count("<figure>") == 5


def test_what_is_drawn_is_told_in_words(loaded):
    document, _ = loaded
    drawn = re.findall(r"<svg[^>]*>", document)
    assert drawn
    assert all('role="img"' in tag and 'aria-label="' in tag for tag in drawn)
    assert document.count("<th scope=") > 20
    assert 'role="status"' in document


def test_what_folds_can_be_reached_by_keyboard(loaded):
    document, _ = loaded
    folded = re.findall(r"<details[^>]*>\s*(<\w+)", document)
    assert folded
    assert set(folded) == {"<summary"}


def test_what_scrolls_can_be_reached_by_keyboard_and_has_a_name(loaded):
    document, _ = loaded
    scrolled = re.findall(r'<div class="scroll"([^>]*)>', document)
    assert len(scrolled) > 4
    names = [re.search(r'aria-label="([^"]+)"', one) for one in scrolled]
    assert all('tabindex="0" role="region"' in one for one in scrolled)
    assert len({name[1] for name in names if name}) == len(scrolled)
    # The order of the keyboard is that of the page.
    assert set(re.findall(r'tabindex="([^"]*)"', document)) == {"0"}


def test_every_section_and_column_has_a_name(loaded):
    document, _ = loaded
    labels = re.findall(r'aria-labelledby="([^"]+)"', document)
    ids = re.findall(r'\bid="([^"]+)"', document)
    assert labels
    assert set(labels) <= set(ids)
    assert len(ids) == len(set(ids))
    assert re.findall(r"<th(?=[ >])(?![^>]*scope=)[^>]*>", document) == []
    assert '<html lang="en">' in document
    assert all(f"<{landmark}" in document for landmark in ("header", "main", "footer"))


def luminance(colour):
    """Return the relative luminance of #rrggbb (WCAG 2.2)."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4
        for one in channels
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def schemes(page):
    """Yield the colours of the light, the dark and the printed page."""
    for block in re.findall(r":root \{(.*?)\}", page.read_text(), re.DOTALL):
        found = re.findall(r"--([a-z]+): (#[0-9a-f]{3,6})", block)
        yield {
            name: value if len(value) == 7 else "#" + "".join(c * 2 for c in value[1:])
            for name, value in found
        }


def test_every_text_stands_out_in_every_scheme(page):
    # 4.5 is what WCAG 2.2 asks of text (1.4.3), 3 of graphics (1.4.11).
    found = list(schemes(page))
    assert len(found) == 3
    for colours in found:
        for ground in ("paper", "fill"):
            for name in ("ink", "soft", "good", "warn", "bad"):
                assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
            for name in ("reference", "replay"):
                assert contrast(colours[name], colours[ground]) >= 3.0, (name, ground)


def pixels(path):
    """Return the width of a PNG and its raw, unfiltered-enough image bytes."""
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    place, image = 8, b""
    while place < len(data):
        size = int.from_bytes(data[place : place + 4], "big")
        if data[place + 4 : place + 8] == b"IDAT":
            image += data[place + 8 : place + 8 + size]
        place += size + 12
    return zlib.decompress(image)


def test_light_and_dark_are_both_drawn(page, tmp_path):
    light, dark = tmp_path / "light.png", tmp_path / "dark.png"
    browse(page, f"--screenshot={light}")
    browse(page, f"--screenshot={dark}", "--blink-settings=preferredColorScheme=0")
    assert len(set(pixels(light))) > 50
    assert len(set(pixels(dark))) > 50
    assert pixels(light) != pixels(dark)
