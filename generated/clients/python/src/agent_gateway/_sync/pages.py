# Copied by "npm run generate" from scripts/generate/runtime/python/_sync/pages.py; do not edit.
"""Pages of a list."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Optional, Set

from .._page_data import Data, Item, PageData, repeated_cursor


class Page(PageData[Data, Item]):
    """A page of a list. Iterate over it to get the items of this page and of all that follow."""

    def __init__(self, data: Data, items: str, following: Callable[[str], Page[Data, Item]], next_field: str, cursor: Optional[str]) -> None:
        super().__init__(data, items, next_field, cursor)
        self._following = following

    def next_page(self) -> Optional[Page[Data, Item]]:
        """The next page, or None after the last."""
        cursor = self.next_cursor
        return None if cursor is None else self._following(cursor)

    def __iter__(self) -> Iterator[Item]:
        page: Optional[Page[Data, Item]] = self
        seen: Set[str] = set()
        while page is not None:
            yield from page.items
            if page.next_cursor in seen:
                raise repeated_cursor()
            seen.add(page.next_cursor or "")
            page = page.next_page()


Pages = Page


def pages_of(first: Callable[[], Page[Any, Any]]) -> Page[Any, Any]:
    return first()
