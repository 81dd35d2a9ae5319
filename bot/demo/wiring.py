"""Puts the parts of one simulated GitHub together and on loopback ports."""

from __future__ import annotations

import functools
import secrets
from email.utils import format_datetime

from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.demo import routes_actions, routes_app, routes_checks, routes_pulls, routes_repo, routes_survey
from bot.demo.access import Access
from bot.demo.artifacts import SignedStore
from bot.demo.ci import Actions
from bot.demo.endpoint import Parts
from bot.demo.loopback import Site
from bot.demo.reruns import Reruns
from bot.demo.state import App, State
from bot.demo.traffic import Traffic
from bot.demo.webhooks import Webhooks


def new_parts() -> Parts:
    """Fresh parts around an empty state; nothing listens yet."""
    state, traffic = State(), Traffic()
    hooks = Webhooks(state)
    actions = Actions(state, hooks)
    reruns = Reruns(state, actions)
    return Parts(state, traffic, Access(state), hooks, actions, reruns, SignedStore(state, traffic))


def make_key_pair() -> tuple[str, str]:
    """A private and a public key, PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


#: Made once per process, because making one takes a noticeable time.
_key_pair = functools.cache(make_key_pair)


def new_app(state: State, *, slug: str) -> App:
    """Register an App with a webhook secret of its own."""
    private_key_pem, public_key_pem = _key_pair()
    app = App(
        id=state.next_id("app"),
        slug=slug,
        user=state.user(f"{slug}[bot]", kind="Bot"),
        owner=state.user("mlm-bot-owners", kind="Organization"),
        private_key_pem=private_key_pem,
        public_keys_pem=[public_key_pem],
        webhook_secret=secrets.token_hex(20),
        created_at=state.clock(),
    )
    state.apps[app.id] = app
    return app


def api_path(state: State) -> str:
    """Where the REST API begins on its host."""
    return "/api/v3" if state.enterprise else ""


def api_site(parts: Parts, *, port: int = 0) -> Site:
    """The REST API as an aiohttp application."""
    prefix = api_path(parts.state)
    app = web.Application(client_max_size=25 * 1024**2)
    for module in (routes_app, routes_repo, routes_pulls, routes_actions, routes_checks, routes_survey):
        for endpoint in module.ENDPOINTS:
            app.router.add_route(endpoint.method, prefix + endpoint.path, endpoint.bind(parts))
    app.router.add_route("*", "/{path:.*}", routes_repo.no_such_endpoint)

    async def stamp(_: web.Request, answer: web.StreamResponse) -> None:
        answer.headers["Date"] = format_datetime(parts.state.clock(), usegmt=True)

    app.on_response_prepare.append(stamp)
    return Site(app, port=port)
