"""Which test a line of the cargo log stands for."""

from pathlib import Path

from tools.requirements import passed_in, rust_module

LOG = """\
     Running unittests src/lib.rs (target/debug/deps/cvx_index-0123456789abcdef)
test edges::traverse::tests::finds_paths ... ok
test distance::tests::agrees ... FAILED
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out
     Running tests/walk.rs (target/debug/deps/walk-fedcba9876543210)
test agrees ... ok
test refuses - should panic ... ok
"""


def test_of_two_tests_of_one_name_only_the_one_that_passed_counts() -> None:
    assert passed_in(LOG) == {
        "cvx_index::edges::traverse::tests::finds_paths",
        "walk::agrees",
        "walk::refuses",
    }


def test_a_source_file_is_found_in_its_binary() -> None:
    modules = {
        "cvx-index/src/edges/traverse_tests.rs": "cvx_index::edges::traverse",
        "cvx-index/src/distance/mod.rs": "cvx_index::distance",
        "cvx-index/src/lib.rs": "cvx_index",
        "cvx-index/tests/walk.rs": "walk",
    }
    assert {path: rust_module(Path(path)) for path in modules} == modules
