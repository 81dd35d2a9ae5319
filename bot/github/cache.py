"""What GitHub answered before, kept for conditional reads: a 304 costs nothing of the hourly limit."""

from __future__ import annotations

import json
from collections.abc import Iterator, MutableMapping
from typing import Any

from cachetools import LRUCache

#: ETag, Last-Modified, the decoded answer, the next page: the shape that gidgethub keeps.
Entry = tuple[str | None, str | None, Any, str | None]

CACHE_BYTES = 16 * 1024**2


class AnswerCache(MutableMapping[str, Entry]):
    """A cache bounded by bytes, for ONE installation: gidgethub's key is the URL only, without the token.

    Answers are kept as JSON text, so whoever changes an answer changes a copy, and the size of an entry is known.
    """

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self._texts: LRUCache[str, str] = LRUCache(maxsize=max_bytes, getsizeof=len)

    def __getitem__(self, url: str) -> Entry:
        etag, last_modified, answer, more = json.loads(self._texts[url])
        return etag, last_modified, answer, more

    def __setitem__(self, url: str, entry: Entry) -> None:
        text = json.dumps(entry)
        if len(text) <= self._texts.maxsize:
            self._texts[url] = text
        else:  # the older answer must not be taken for this one
            self._texts.pop(url, None)

    def __delitem__(self, url: str) -> None:
        del self._texts[url]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)
