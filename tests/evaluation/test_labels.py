from cvx.evaluation.labels import Label, groups_of


def test_a_label_without_a_group_is_a_group_of_its_own() -> None:
    labels = [Label(query="x", gold=frozenset(), group=g) for g in (None, "a", None)]
    assert groups_of(labels) == ["#0", "a", "#2"]
