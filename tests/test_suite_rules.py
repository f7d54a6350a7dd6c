"""The rules of tests/conftest.py, tried on small suites of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import eventually

RULES = (Path(__file__).parent / "conftest.py").read_text()


@pytest.mark.parametrize(
    "test",
    [
        "def test_it(): pytest.skip('no time')",
        "@pytest.mark.skip\ndef test_it(): pass",
        "pytest.importorskip('no_such_module')\ndef test_it(): pass",
    ],
    ids=["inside", "marked", "module"],
)
def test_a_skipped_test_fails_the_suite(pytester: pytest.Pytester, test: str) -> None:
    pytester.makeconftest(RULES)
    pytester.makepyfile(f"import pytest\n{test}")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert result.ret != 0
    assert "was skipped: make it run here" in result.stdout.str()


def test_an_expected_failure_is_no_skip(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(RULES)
    pytester.makepyfile("import pytest\n@pytest.mark.xfail\ndef test_it(): assert False")
    assert pytester.runpytest_subprocess("-p", "no:cacheprovider").ret == 0


def test_eventually_returns_the_answer() -> None:
    answers = iter([None, 0, "done"])
    assert eventually(lambda: next(answers)) == "done"


def test_eventually_fails_with_the_last_answer() -> None:
    with pytest.raises(AssertionError, match="the last answer was 0"):
        eventually(lambda: 0, timeout=0.02)
