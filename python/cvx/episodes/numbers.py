"""Which numbers the next episodes get, and the entities that nobody named."""

from __future__ import annotations

from dataclasses import dataclass

from cvx.errors import InvalidEntityError
from cvx.store.reads import OWN_ENTITIES


@dataclass(slots=True)
class Numbers:
    """The first numbers that are free.

    Attributes
    ----------
    episode, entity : int
        The next to give out.
    """

    episode: int = 0
    entity: int = 0

    def start_at(self, episode: int, entity: int) -> None:
        """Give out nothing below these any more; entities from `OWN_ENTITIES` on are not counted.

        Such entities are the user's, whose own numbers may be hashes of 64 bits.
        """
        self.episode = max(self.episode, episode)
        if entity <= OWN_ENTITIES:
            self.entity = max(self.entity, entity)

    def own_entity(self) -> int:
        """Return the entity of an episode for which none was named.

        Raises
        ------
        InvalidEntityError
            None is free below `OWN_ENTITIES`.
        """
        if self.entity >= OWN_ENTITIES:
            raise InvalidEntityError(
                f"entity {self.entity - 1} leaves no number below {OWN_ENTITIES} for an episode "
                "without one: give entity_id"
            )
        return self.entity
