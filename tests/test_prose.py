"""The check of phrases finds what it is meant to find."""

import prose


def test_a_phrase_is_found_across_lines_and_not_in_code():
    known = prose.phrases()
    text = "It is held\nagainst a table.\n\n`on the way`\n\n```\nanew\n```\n"
    assert [problem.split(":")[1] for problem in prose.found("page", text, known)] == ["1"]
    assert not list(prose.found("page", "It holds the record. They cannot be told apart.", known))


def test_every_phrase_says_what_to_write():
    assert all(instead for _, instead in prose.phrases())


def test_pages_and_list_texts_are_read():
    names = {name for name, _ in prose.texts()}
    assert {"README.md", "docs/scenario.md", "docs/decisions/065-kinds-keep-fields.md"} <= names
    assert any(name.startswith("netloom list: routing.selector drill") for name in names)
