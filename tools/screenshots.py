"""Take the screenshots of docs/report.md: ``python tools/screenshots.py BUNDLE``.

BUNDLE is a packed example, such as the one that ``make demo`` leaves. The page shows a
made-up replay of it whose results differ, so that every part has something to show.
Needs Chromium.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from reprobundle.format.record import Fact
from reprobundle.report.html import render_html
from reprobundle.report.page import build_page
from reprobundle.verify.selftest.of_results import with_array
from reprobundle.verify.selftest.subject import Subject
from reprobundle.verify.verify import verify_bundle

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SCHEMES = {"light": (), "dark": ("--blink-settings=preferredColorScheme=0",)}
# What a picture leaves out of the page, as style.
PARTS = {
    "report": "",
    "figures": "header, footer, section > :not(.figures, .legend, [id^=figures])"
    " { display: none }",
}
HEIGHTS = {"report": 1500, "figures": 1040}


def made_up_replay(bundle: Path, folder: Path) -> Path:
    """Write a replay whose first array is noisy and whose machine differs."""
    subject = Subject(bundle, folder / "subject")
    draws = np.random.default_rng(0)
    noisy = with_array(
        lambda array: (array + draws.normal(0, 1e-4, array.shape)).astype(array.dtype)
    )
    echo = subject.echo()
    facts = {
        **echo.main.record.environment,
        "torch.num_threads": Fact(value=8, source="made up"),
    }
    draft = noisy(subject, echo.main.saying(environment=facts))
    return echo.but(draft).write(folder / "made-up.rpr.zip")


def main(bundle: Path) -> None:
    """Write two parts of the page in both schemes, as docs/images/PART-SCHEME.png."""
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        replay = made_up_replay(bundle, folder)
        report = verify_bundle(bundle, replay_file=replay)
        page = folder / "report.html"
        page.write_text(render_html(build_page(bundle, report, replay)), "utf-8")
        for scheme, part in itertools.product(SCHEMES, PARTS):
            shown = page.with_name(f"{part}.html")
            text = page.read_text("utf-8")
            shown.write_text(text.replace("</style>", f"{PARTS[part]}</style>"))
            options = (f"--window-size=1000,{HEIGHTS[part]}", *SCHEMES[scheme])
            take(browser, shown, IMAGES / f"{part}-{scheme}.png", options)


def take(browser: str, page: Path, target: Path, options: Iterable[str]) -> None:
    """Write what a window shows of a page."""
    subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--screenshot={target}",
            *options,
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
