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

#: Their last 32 bits are an IPv4 address: NAT64 (RFC 6052), and what came long before it (RFC 4291, 2.5.5.1).
WITH_IPV4 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))
#: NAT64 of one's own network (RFC 8215), which Python before 3.13 takes for public.
OWN_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")


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
        public = [entry for entry in found if is_public(ipaddress.ip_address(entry["host"]))]
        if not public:
            raise OSError(f"{host} has no public address")
        return public

    async def close(self) -> None:
        await self._inner.close()


def is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Say whether the address, and the IPv4 address within it if a gateway would unpack one, is everybody's."""
    if not address.is_global or address.is_multicast:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return True
    inner = address.sixtofour
    if any(address in network for network in WITH_IPV4):
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.is_site_local or address in OWN_NAT64:
        return False
    return inner is None or is_public(inner)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return False


def _covers(entry: str, host: str) -> bool:
    return bool(entry) and (host == entry or (entry.startswith(".") and host.endswith(entry)))
