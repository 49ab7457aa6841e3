# Copied by "npm run generate" from scripts/generate/runtime/python/_async/pages.py; do not edit.
"""Pages of a list."""

from __future__ import annotations

from typing import Any, AsyncIterator, Awaitable, Callable, Generator, Generic, Optional, Set

from .._page_data import Data, Item, PageData, repeated_cursor


class AsyncPage(PageData[Data, Item]):
    """A page of a list. Iterate over it with ``async for`` to get the items of this page and of all that follow."""

    def __init__(
        self, data: Data, items: str, following: Callable[[str], Awaitable[AsyncPage[Data, Item]]], next_field: str, cursor: Optional[str]
    ) -> None:
        super().__init__(data, items, next_field, cursor)
        self._following = following

    async def next_page(self) -> Optional[AsyncPage[Data, Item]]:
        """The next page, or None after the last."""
        cursor = self.next_cursor
        return None if cursor is None else await self._following(cursor)

    async def __aiter__(self) -> AsyncIterator[Item]:
        page: Optional[AsyncPage[Data, Item]] = self
        seen: Set[str] = set()
        while page is not None:
            for item in page.items:
                yield item
            if page.next_cursor in seen:
                raise repeated_cursor()
            seen.add(page.next_cursor or "")
            page = await page.next_page()


class AsyncPages(Generic[Data, Item]):
    """A requested list. Await it for its first page, or read the items of all pages with ``async for``."""

    def __init__(self, first: Callable[[], Awaitable[AsyncPage[Data, Item]]]) -> None:
        self._first = first

    def __await__(self) -> Generator[Any, Any, AsyncPage[Data, Item]]:
        return self._first().__await__()

    async def __aiter__(self) -> AsyncIterator[Item]:
        async for item in await self._first():
            yield item


def pages_of(first: Callable[[], Awaitable[AsyncPage[Any, Any]]]) -> AsyncPages[Any, Any]:
    return AsyncPages(first)
