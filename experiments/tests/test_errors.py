"""The errors of experiments: one tree under CvxError, each raised in a test."""

import inspect
import re
from pathlib import Path

import experiments.errors
from cvx.errors import CvxError

OWN = [
    kind
    for _, kind in inspect.getmembers(experiments.errors, inspect.isclass)
    if kind.__module__ == experiments.errors.__name__
]


def test_every_error_is_of_cvx_and_of_a_builtin_and_says_what_it_is() -> None:
    for error in OWN:
        assert error.__doc__
        assert issubclass(error, CvxError)
        builtin = [base for base in error.__mro__ if base.__module__ == "builtins"]
        assert builtin[0] not in (Exception, BaseException, object)


def test_every_error_has_a_test_that_raises_it() -> None:
    sources = "\n".join(path.read_text() for path in Path(__file__).parent.rglob("test_*.py"))
    asserted = set(re.findall(r"raises\(\s*(\w+Error)", sources))
    assert {error.__name__ for error in OWN if not error.__subclasses__()} <= asserted
