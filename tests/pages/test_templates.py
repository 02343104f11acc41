"""All templates, read as text: nothing inline, nothing evaluated, no data in a script."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from config.home import BASE_DIR

TEMPLATES = sorted((BASE_DIR / "templates").rglob("*.html"))
_DJANGO = re.compile(r"{%.*?%}|{#.*?#}|{{.*?}}", re.DOTALL)
EVALUATED = ("hx-on", "hx-vars", "hx-vals", "hx-headers", "data-hx-on")


class Reader(HTMLParser):
    """Tags and attributes of a template, with Django's own tags taken out."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.script_text = ""
        self._inside = ""
        self.feed(_DJANGO.sub("", text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in ("script", "style"):
            self.script_text += data.strip()


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: str(path.relative_to(BASE_DIR)))
def test_a_template_has_nothing_inline(template: Path) -> None:
    """The content security policy allows neither; a browser would drop it silently."""
    text = template.read_text(encoding="utf-8")
    read = Reader(text)
    assert read.script_text == ""
    for tag, attributes in read.tags:
        assert tag != "style"
        if tag == "script":
            assert attributes.get("src") is not None
        for name, value in attributes.items():
            assert name != "style", f"<{tag} style>"
            assert not name.startswith("on"), f"<{tag} {name}>"
            assert not name.startswith(EVALUATED), f"<{tag} {name}>"
            assert not (value or "").strip().lower().startswith(("javascript:", "js:", "data:")), (
                f"<{tag} {name}={value}>"
            )
        assert "[" not in (attributes.get("hx-trigger") or ""), "a filter of hx-trigger is evaluated"


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: str(path.relative_to(BASE_DIR)))
def test_a_template_trusts_no_value(template: Path) -> None:
    text = template.read_text(encoding="utf-8")
    for word in ("|safe", "safeseq", "autoescape off", "mark_safe"):
        assert word not in text


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: str(path.relative_to(BASE_DIR)))
def test_each_form_that_posts_carries_a_token_and_nothing_else_posts(template: Path) -> None:
    text = template.read_text(encoding="utf-8")
    posts = re.findall(r'<form[^>]*method="post"', text)
    assert text.count("{% csrf_token %}") == len(posts)
    assert len(re.findall(r"hx-(?:post|put|patch|delete)=", text)) <= len(posts)


def test_python_code_marks_nothing_safe_by_hand() -> None:
    """format_html escapes what it is given; mark_safe does not."""
    for package in ("journal", "approvals", "agents", "config"):
        for file in (BASE_DIR / package).rglob("*.py"):
            assert "mark_safe(" not in file.read_text(encoding="utf-8"), file
