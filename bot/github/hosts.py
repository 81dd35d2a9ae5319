"""Where a download may come from: the storage that GitHub redirects to, and nothing else."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable

from aiohttp import ThreadedResolver
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

#: A leading dot stands for every name below it. Artifacts and logs lie on Azure; older logs on GitHub's own names.
STORAGE_HOSTS = (".blob.core.windows.net", ".githubusercontent.com")


class ForbiddenHostError(Exception):
    """A redirect led where no download of ours can be."""


class DownloadHosts:
    """The allow-list. The API's own host is on it (an Enterprise Server may serve files itself), and extra ones."""

    def __init__(self, api_url: str, extra: Iterable[str] = ()) -> None:
        api = URL(api_url)
        self._own = tuple(name.lower() for name in (api.host or "", *extra))
        # A GitHub on this very machine (the demo, a test) speaks plain http and keeps its files on another port.
        self._local = api.scheme == "http" and is_loopback(api.host or "")

    def check(self, url: URL) -> None:
        """Return if `url` may be read.

        Raises:
            ForbiddenHostError: another scheme or host, credentials within the URL.
        """
        host = (url.host or "").lower()
        if self._local and url.scheme == "http" and is_loopback(host):
            return
        allowed = any(_covers(entry, host) for entry in (*self._own, *STORAGE_HOSTS))
        if url.scheme != "https" or not allowed or url.user is not None:
            # The query is left out: it holds the signature.
            raise ForbiddenHostError(f"a download from {url.scheme}://{host} is not allowed")

    def may_be_private(self, host: str) -> bool:
        """Say whether the operator named the host, which then may well be in his own network."""
        return any(_covers(entry, host.lower()) for entry in self._own)


class PublicResolver(AbstractResolver):
    """Resolves names, but public storage never to a private address: no poisoned name opens the inner network."""

    def __init__(self, hosts: DownloadHosts, inner: AbstractResolver | None = None) -> None:
        self._hosts = hosts
        self._inner = inner or ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        if is_loopback(host) or self._hosts.may_be_private(host):
            return found
        public = [entry for entry in found if ipaddress.ip_address(entry["host"]).is_global]
        if not public:
            raise OSError(f"{host} has no public address")
        return public

    async def close(self) -> None:
        await self._inner.close()


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return False


def _covers(entry: str, host: str) -> bool:
    return bool(entry) and (host == entry or (entry.startswith(".") and host.endswith(entry)))
