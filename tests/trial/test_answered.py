"""At least nine of ten questions of each person are answered on a page, in a few clicks and without SQL."""

import tomllib
from importlib import import_module
from pathlib import Path

import pytest

QUESTIONS = tomllib.loads((Path(__file__).parent / "questions.toml").read_text(encoding="utf-8"))
UNANSWERED = QUESTIONS.pop("unanswered")


@pytest.mark.parametrize("role", QUESTIONS)
def test_nine_of_ten_questions_have_an_answer_that_is_tried(role):
    tried = {
        name.removeprefix("test_")
        for name in vars(import_module(f"tests.trial.test_{role}"))
        if name.startswith("test_")
    }
    assert tried == QUESTIONS[role].keys() - UNANSWERED.keys()
    assert len(QUESTIONS[role]) == 10
    assert len(tried) >= 9
