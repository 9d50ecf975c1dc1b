"""Markdown that shows texts as they are."""

from dataclasses import replace

from realistic import keystone

from loadstone.report import badge, markdown
from loadstone.report.sections.run import report_of

RESULT, _ = keystone()


def titled(title: str) -> str:
    findings = tuple(replace(one, title=title) for one in RESULT.measurements)
    return markdown.render(report_of(replace(RESULT, measurements=findings)))


def test_a_title_makes_no_picture_no_link_and_no_line_of_its_own() -> None:
    text = titled("![t](http://evil.example/t.png)\n# head `code` *bold*")
    assert "![t](" not in text
    assert "\n# head" not in text
    assert "!\\[t\\](http://evil.example/t.png) # head \\`code\\` \\*bold\\*" in text


def test_a_title_that_begins_the_sentence_is_written_once() -> None:
    assert "\n**keystone_v3.fetch_token**: the service sustains N" in titled(
        "keystone_v3.fetch_token"
    )


def test_a_control_character_breaks_no_format() -> None:
    findings = (replace(RESULT.measurements[0], title="a\x1b[31m"),)
    report = report_of(replace(RESULT, measurements=findings))
    assert "\x1b" not in markdown.render(report)
    assert "\x1b" not in badge.render(report)
