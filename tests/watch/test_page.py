"""The page's own files: colours that can be read, in the light and in the dark."""

import re

import pytest

from coex.watch.server import page_file


def luminance(colour: str) -> float:
    """Of a #rrggbb, as WCAG 2 defines it."""
    shares = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_and_curves_stand_out(scheme: str) -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    light, dark = re.findall(r":root \{(.*?)\}", page_file("page.css").decode(), re.DOTALL)
    colours = dict(re.findall(r"--(\w+): (#\w{6});", dark if scheme == "dark" else light))
    for text in ("ink", "quiet", "accent", "good", "busy", "warn", "bad"):
        assert min(contrast(colours[text], colours[ground]) for ground in ("paper", "card", "shade")) >= 4.5, text
    for line in ("heat", *(f"c{index}" for index in range(8))):
        assert contrast(colours[line], colours["card"]) >= 3, line
