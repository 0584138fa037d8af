"""Near repeats, found by shared words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

#: A word that stands in more statements than this tells none of them apart.
MAX_POSTINGS = 200


class Known:
    """What has been noted. A statement whose words nearly all stand in one note is not new."""

    def __init__(self, share: float = 0.8) -> None:
        self._share = share
        self._index: dict[str, list[int]] = defaultdict(list)
        self._sizes: list[int] = []

    def add(self, stems: Collection[str]) -> None:
        number = len(self._sizes)
        self._sizes.append(len(stems))
        for stem in set(stems):
            postings = self._index[stem]
            if len(postings) < MAX_POSTINGS:
                postings.append(number)

    def fresh(self, stems: Sequence[str], facts: Collection[str] = ()) -> bool:
        """Tell whether a statement is new. A number not seen before always makes it so."""
        if not stems:
            return False
        hits: dict[int, int] = defaultdict(int)
        for stem in stems:
            for number in self._index.get(stem, ()):
                hits[number] += 1
        need = self._share * len(stems)
        near = [number for number, found in hits.items() if found >= need]
        if not near:
            return True
        numbers = [fact for fact in facts if fact[:1].isdigit()]
        return any(all(n not in self._index.get(fact, ()) for n in near) for fact in numbers)
