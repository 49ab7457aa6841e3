# Copied by "npm run generate" from scripts/generate/runtime/python/_page_data.py; do not edit.
"""The content of a page of a list."""

from __future__ import annotations

from typing import Any, Dict, Generic, List, Optional, TypeVar, cast

from ._error import NotAGatewayError
from ._reply import request_id_of


def _not_a_page(detail: str) -> NotAGatewayError:
    return NotAGatewayError("Not a gateway's answer", detail=f"{detail} Is this a gateway?")


def repeated_cursor() -> NotAGatewayError:
    return _not_a_page("The list does not end: it repeats a cursor.")


Data = TypeVar("Data")
Item = TypeVar("Item")


class PageData(Generic[Data, Item]):
    """The content of a page of a list."""

    data: Data
    """The reply itself."""

    def __init__(self, data: Data, items: str, next_field: str, cursor: Optional[str]) -> None:
        found = cast("Dict[str, Any]", data)
        if not isinstance(found.get(items), list):
            raise _not_a_page(f"The answer has no list `{items}`.")
        following = found.get(next_field)
        if following is not None and not isinstance(following, str):
            raise _not_a_page(f"The `{next_field}` of the answer is not text.")
        if following is not None and following == cursor:
            raise repeated_cursor()
        self.data = data
        self._items = items
        self._next_field = next_field

    @property
    def items(self) -> List[Item]:
        """The items of this page only."""
        return cast("Dict[str, List[Item]]", self.data)[self._items]

    @property
    def next_cursor(self) -> Optional[str]:
        """The cursor of the next page. None on the last."""
        return cast("Dict[str, Optional[str]]", self.data).get(self._next_field)

    @property
    def has_more(self) -> bool:
        return self.next_cursor is not None

    @property
    def request_id(self) -> str:
        return request_id_of(self.data)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._items}={len(self.items)}, has_more={self.has_more})"
