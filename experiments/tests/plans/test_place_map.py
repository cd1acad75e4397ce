"""A map is kept where commands lead elsewhere from each place."""

from __future__ import annotations

import random

from experiments.plans.place_map import PlaceMap, moving


def test_only_what_leads_to_different_places_moves() -> None:
    told = [("walk left", "Attic. A peg."), ("grab hat", "Done."), ("walk left", "Loft.")]
    assert moving(told) == {"walk #"}
    assert moving([("visit loft", "Loft. A hat."), ("visit loft", "Loft. Nothing.")]) == set()
    assert moving([]) == set()


def test_without_moves_nothing_leads_anywhere() -> None:
    atlas = PlaceMap(())
    atlas.note(None, "Hall. A hat.", ["visit loft"])
    atlas.note("visit loft", "Loft. A peg.", ["visit hall"])
    assert list(atlas.toward({"hat"})) == []


def test_the_way_leads_to_where_a_thing_was_told_of() -> None:
    atlas = PlaceMap({"walk #"})
    atlas.note(None, "Hall. A peg.", ["walk left"])
    atlas.note("walk left", "Attic. A red hat.", ["walk left", "walk right"])
    atlas.note("walk right", "Hall. A peg.", ["walk left"])
    assert list(atlas.toward({"red hat"})) == ["walk left"]
    assert list(atlas.toward(set())) == []


def test_what_nobody_told_of_is_looked_for_where_nobody_was() -> None:
    atlas = PlaceMap({"walk #"})
    atlas.note(None, "Hall. A peg.", ["walk left", "walk right"])
    assert set(atlas.toward({"scarf"})) == {"walk left", "walk right"}
    atlas.note("walk left", "Attic.", ["walk right"])
    atlas.note("walk right", "Hall. A peg.", ["walk left", "walk right"])
    assert set(atlas.toward({"scarf"})) == {"walk right"}
    atlas.note("walk right", "Cellar.", ["walk left"])
    assert list(atlas.toward({"scarf"})) == ["walk left"], "this may lead elsewhere: nobody knows"
    atlas.note("walk left", "Hall. A peg.", ["walk left", "walk right"])
    assert list(atlas.toward({"scarf"})) == []


def test_following_the_way_arrives_by_the_shortest_path() -> None:
    rng = random.Random(3)
    size = 5
    atlas = PlaceMap({"walk #"})
    ways = {"walk up": -size, "walk down": size, "walk left": -1, "walk right": 1}

    def can(place: int) -> dict[str, int]:
        inside = {w: place + d for w, d in ways.items() if 0 <= place + d < size * size}
        wall = {w for w, p in inside.items() if abs(p - place) == 1 and p // size != place // size}
        return {w: p for w, p in inside.items() if w not in wall}

    def tell(place: int) -> str:
        return f"place {place}.{' A hat.' if place == size * size - 1 else ''}"

    here = 0
    atlas.note(None, tell(here), can(here))
    for _ in range(2000):
        way = rng.choice(sorted(can(here)))
        here = can(here)[way]
        atlas.note(way, tell(here), can(here))
    distance = sum(size - 1 - part for part in divmod(here, size))
    taken = 0
    while here != size * size - 1:
        (way,) = atlas.toward({"hat"})
        here = can(here)[way]
        atlas.note(way, tell(here), can(here))
        taken += 1
        assert taken < 2 * size
    assert taken == distance
