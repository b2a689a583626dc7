import pytest

from formwright.core.text import escaped, printable, without_password


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql+psycopg://me:se/cret@host:5432/db", "postgresql+psycopg://me:***@host:5432/db"),
        ("--storage=postgresql://me:secret@host/db#mine", "--storage=postgresql://me:***@host/db#mine"),
        ("postgresql://host/db?user=me&password=secret&x=1", "postgresql://host/db?user=me&password=***&x=1"),
        ("postgresql://host/db?sslpassword=secret#mine", "postgresql://host/db?sslpassword=***#mine"),
        ("postgresql://host/db?pass%77ord=secret", "postgresql://host/db?pass%77ord=***"),
        ("postgresql://host:5432/db?password=se@cret", "postgresql://host:5432/db?password=***"),
        ("postgresql://host/db?password=se#cret#mine", "postgresql://host/db?password=***#mine"),
        ("postgresql://me:se@cr#et@host/db", "postgresql://me:***@host/db"),
        (
            "neither postgresql://me:one@a/b, nor postgresql://me:two@c",
            "neither postgresql://me:***@a/b, nor postgresql://me:***@c",
        ),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("studies/mine", "studies/mine"),
        ("params<=5e6", "params<=5e6"),
    ],
)
def test_passwords_are_hidden(text: str, shown: str) -> None:
    assert without_password(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[2J",  # clears the screen
        "\x1b]0;title\x07",  # renames the window
        "\x9b31m",  # the same as ESC [ in one character
        "\x08\x08\x08",
        "good\rbad",
        "\u202egnp.exe",  # shows letters backwards
        "\x00",
        "\x7f",
    ],
)
def test_nothing_commands_a_terminal(text: str) -> None:
    assert all(letter.isprintable() for letter in escaped(text))
    assert escaped(escaped(text)) == escaped(text)


def test_lines_tabs_and_letters_stay() -> None:
    assert printable("caf\u00e9\t\u4e2d\u6587\n\U0001f642") == "caf\u00e9\t\u4e2d\u6587\n\U0001f642"
