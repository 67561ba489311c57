"""Images are equal if every sample is and nothing says that they look otherwise."""

import io
import sys

import msgspec
import numpy as np
import pytest

from reprobundle.errors import UnreadableOutputError
from reprobundle.format.policy import OutputRule, Tolerance
from reprobundle.verify.compare_images import compare_images
from tests.outputs.pictures import png, saved
from tests.verify.builder import Run

Image = pytest.importorskip("PIL.Image")

RED = np.random.default_rng(5).integers(0, 250, (6, 5, 4)).astype("u1")


def compared(first, second, rule=None):
    return compare_images(io.BytesIO(first), io.BytesIO(second), rule)


def changed(by=1, at=(3, 2, 1)):
    samples = RED.copy()
    samples[at] = (int(samples[at]) + by) % 256
    return samples


def test_other_filters_compression_and_text_are_identical_pixels():
    again = png(RED, colour=6, filters=(4, 1), extra=[(b"tEXt", b"Software\0other")])
    (part,) = compared(png(RED, colour=6), again)
    assert part.equal
    assert (part.name, part.dtype, part.elements) == ("", "pixel", 120)


def test_one_sample_that_differs_is_outside_and_named():
    (part,) = compared(png(RED, colour=6), png(changed(), colour=6))
    assert part.worst_index == (3, 2, 1)
    assert part.problem.startswith("1 of 120 elements")
    before = int(RED[3, 2, 1])
    assert (part.expected, part.got) == (str(before), str(before + 1))
    assert part.max_abs == 1.0


def test_a_rule_for_pixels_admits_a_difference_and_tells_its_size():
    # MSE = 4 / 120, so PSNR = 10 log10(255^2 * 120 / 4) = 62.9 dB.
    rule = Tolerance(rtol=0.0, atol=2.0)
    (part,) = compared(png(RED, colour=6), png(changed(2), colour=6), rule)
    assert (part.problem, part.equal, part.note) == ("", False, "PSNR 62.9 dB")
    (part,) = compared(png(RED, colour=6), png(changed(3), colour=6), rule)
    assert part.problem


def test_a_share_of_the_samples_may_lie_outside():
    far = changed(100, (0, 0, 0))
    first, second = png(RED, colour=6), png(far, colour=6)
    for share, within in ((1 / 120, True), (0.9 / 120, False)):
        rule = Tolerance(rtol=0.0, atol=1.0, share=share)
        (part,) = compared(first, second, rule)
        assert (not part.problem) is within


def test_the_last_of_sixteen_bits_is_a_difference():
    deep = np.random.default_rng(1).integers(0, 60000, (4, 4, 3)).astype("u2")
    other = deep.copy()
    other[2, 1, 0] += 1
    (part,) = compared(png(deep, colour=2), png(other, colour=2))
    assert part.problem
    assert part.worst_index == (2, 1, 0)


GREY = Image.new("L", (4, 4), 9)
EXIF = Image.Exif()
EXIF[0x0112] = 6


def frames(*values, **options):
    shown = [Image.new("L", (4, 4), value) for value in values]
    return saved(shown[0], "GIF", save_all=True, append_images=shown[1:], **options)


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        (saved(GREY, "PNG"), saved(GREY, "BMP"), "format BMP, expected PNG"),
        (
            saved(GREY, "PNG"),
            saved(GREY.convert("RGB"), "PNG"),
            "colour mode RGB, expected L",
        ),
        (
            saved(GREY.convert("RGB"), "PNG"),
            saved(GREY.convert("RGBA"), "PNG"),
            "colour mode RGBA, expected RGB",
        ),
        (
            saved(GREY, "PNG"),
            saved(Image.new("L", (2, 8), 9), "PNG"),
            "size 2 x 8, expected 4 x 4",
        ),
        (
            saved(GREY, "JPEG"),
            saved(GREY, "JPEG", exif=EXIF),
            "orientation 6, expected 1",
        ),
        (
            saved(GREY, "PNG"),
            saved(GREY, "PNG", transparency=9),
            "transparent colour 9, expected none",
        ),
        (
            frames(1, 99, duration=10),
            frames(1, 99, duration=20),
            "duration 20.0, expected 10.0",
        ),
        (frames(1, 99), frames(1, 99, loop=3), "loops 3, expected none"),
        (frames(1, 99, 200), frames(1, 99), "missing in the replay"),
        (frames(1, 99), frames(1, 99, 200), "not in the reference"),
    ],
)
def test_what_a_file_says_of_its_frames_is_exact_under_any_rule(first, second, problem):
    for rule in (None, Tolerance(rtol=1.0, atol=255.0, share=1.0)):
        found = [part for part in compared(first, second, rule) if part.problem]
        assert found
        assert problem in found[0].problem


def test_a_difference_in_a_late_frame_is_found_there():
    parts = compared(frames(1, 99, 200), frames(1, 99, 201))
    assert [part.name for part in parts] == ["frame 0", "frame 1", "frame 2"]
    assert [bool(part.problem) for part in parts] == [False, False, True]


def test_another_palette_for_the_same_colours_is_identical():
    def painted(order):
        image = Image.new("P", (3, 1))
        colours = {1: (9, 8, 7), 2: (1, 2, 3), 3: (4, 5, 6)}
        image.putpalette([value for one in order for value in colours[one]])
        for column in range(3):
            image.putpixel((column, 0), order.index(column + 1))
        return saved(image, "PNG")

    (part,) = compared(painted([1, 2, 3]), painted([3, 1, 2]))
    assert part.equal


def test_an_error_names_its_side():
    with pytest.raises(UnreadableOutputError, match=r"^replay: .*truncated"):
        compared(png(RED, colour=6), png(RED, colour=6)[:-5])


# --- verdicts ------------------------------------------------------------------------

NOISY = Image.fromarray(np.kron(RED[:, :, :3], np.ones((8, 8, 1), "u1")))
JPEG = saved(NOISY, "JPEG", quality=90)
ANEW = saved(NOISY, "JPEG", quality=89)
PIXELS = OutputRule(
    match="*",
    dtypes={"pixel": Tolerance(rtol=0.0, atol=20.0)},
    reason="encoded anew by another library",
)
NUMBERS = OutputRule(
    match="*", tolerance=Tolerance(rtol=0.5, atol=12.0), reason="for numbers"
)


def verified(bench, first, second, name="a.img", rule=None):
    if rule is not None:
        bench.policy = msgspec.structs.replace(bench.policy, outputs=(rule,))
    bench.reference = bench.repeat = Run(outputs={name: first})
    bench.pack().replay(Run(outputs={name: second}))
    report = bench.verify()
    return report, report.judgements[-1].outputs[0]


@pytest.mark.parametrize(
    ("first", "second", "rule", "verdict"),
    [
        pytest.param(
            png(RED, colour=6),
            png(RED, colour=6, filters=(4,)),
            None,
            "REPRODUCED, bit-identical",
            id="metadata",
        ),
        pytest.param(
            png(RED, colour=6),
            png(changed(), colour=6),
            None,
            "NOT REPRODUCED",
            id="one sample",
        ),
        pytest.param(JPEG, ANEW, None, "NOT REPRODUCED", id="lossy, exact"),
        pytest.param(
            JPEG, ANEW, PIXELS, "REPRODUCED, within tolerance", id="lossy, by rule"
        ),
        pytest.param(
            JPEG, ANEW, NUMBERS, "NOT REPRODUCED", id="a rule for numbers is none"
        ),
        pytest.param(JPEG, JPEG[:200], PIXELS, "NOT REPRODUCED", id="damaged"),
        pytest.param(JPEG[:200], JPEG[:199], PIXELS, "NOT REPRODUCED", id="both"),
        pytest.param(JPEG, b"no image", PIXELS, "NOT REPRODUCED", id="no image"),
    ],
)
def test_the_verdict_follows_the_pixels(bench, first, second, rule, verdict):
    report, _ = verified(bench, first, second, rule=rule)
    assert report.verdict == verdict, report.reasons


def test_metadata_alone_is_said_to_be_that(bench):
    again = png(RED, colour=6, filters=(4,))
    _, output = verified(bench, png(RED, colour=6), again)
    assert output.reason == "the bytes of the file differ, every pixel is identical"


def test_without_the_decoder_nothing_is_claimed(bench, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    report, output = verified(bench, JPEG, ANEW, rule=PIXELS)
    assert report.verdict == "INCOMPLETE"
    assert output.result == "not-compared"
    assert "pip install 'reprobundle[images]'" in output.reason


def test_equal_bytes_need_no_decoder(bench, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    report, _ = verified(bench, JPEG, JPEG)
    assert report.verdict == "REPRODUCED, bit-identical"
