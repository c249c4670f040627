from pathlib import Path

from tests.naming import complaints


def test_what_lint_complains_of(tmp_path: Path) -> None:
    package = tmp_path / "voicepipe"
    package.mkdir()
    (package / "one.py").write_text(
        'class Waits:\n    """How long a turn waits."""\n    ms: int\n    """Likewise, in ms."""\n'
    )
    (package / "two.py").write_text('class _Waits:\n    """One call\'s."""\n')
    twice, likewise, whose = complaints(tmp_path)
    assert twice.startswith("voicepipe/two.py:1: class Waits stands in voicepipe/one.py:1, too")
    assert likewise.startswith('voicepipe/one.py:4: "Likewise, in ms." leans on')
    assert whose.startswith('voicepipe/two.py:2: "One call\'s." leans on')
