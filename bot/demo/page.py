"""The demo's page: a pull request as GitHub would show it, with buttons that make things happen.

Served on loopback only. The page loads nothing from elsewhere (a strict CSP says so), and an action is taken only from
the page itself: it must carry a header that no other site can send, and a Host that names loopback.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bot.demo.director import PEOPLE, Director
from bot.demo.failures.catalogue import CATALOGUE
from bot.demo.loopback import Site
from bot.demo.said import Said
from bot.demo.view import avatar_hue, log_lines, page_view

_HERE = Path(__file__).parent
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
#: The parts of the page that change by themselves; each is a template of its own.
PARTS = ("status", "said", "timeline", "checks", "labels")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_LOOPBACK = frozenset({"127.0.0.1", "localhost"})


class Page:
    """Serves the page of one director."""

    def __init__(self, director: Director, *, port: int) -> None:
        self._director = director
        self._templates = Environment(
            loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
        )
        self._templates.globals |= {"hue": avatar_hue}
        self._actions: dict[str, Callable[[dict[str, str]], Awaitable[Said]]] = {
            "fail": lambda asked: director.fail(asked["failure"]),
            "pass": lambda _: director.let_pass(),
            "push": lambda _: director.push(),
            "push-unvetted": lambda _: director.push_unvetted(),
            "rerun": lambda _: director.rerun(),
            "label": lambda asked: director.toggle_label(asked["name"]),
            "press": lambda asked: director.press(asked["check"], asked["button"], asked["as"]),
            "comment": lambda asked: director.comment(asked["as"], asked["body"]),
        }
        app = web.Application(middlewares=[_guard, self._wait_for_stage])
        app.router.add_get("/", self._home)
        app.router.add_get("/parts", self._parts)
        app.router.add_post("/act/{action}", self._act)
        app.router.add_static("/static", _HERE / "static")
        app.router.add_get("/{owner}/{repo}/pull/{number}", self._show)
        app.router.add_get("/{owner}/{repo}/actions/runs/{run}", self._home)
        app.router.add_get("/{owner}/{repo}/actions/runs/{run}/job/{job}", self._show_log)
        app.router.add_get("/{owner}/{repo}/runs/{check}", self._home)
        app.router.add_get("/{path:.*}", self._elsewhere)
        self._site = Site(app, port=port)

    async def start(self) -> str:
        """Listen; returns the page's base URL.

        Raises:
            OSError: the port is taken.
        """
        return await self._site.start()

    async def close(self) -> None:
        await self._site.close()

    @property
    def path(self) -> str:
        """Where the pull request is."""
        return f"/{self._director.repo.full_name}/pull/{self._director.pull.number}"

    @web.middleware
    async def _wait_for_stage(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._director.ready or request.path.startswith("/static/"):
            return await handler(request)
        headers = {"Retry-After": "1", "Refresh": "1"}
        return web.Response(status=503, text="The demo is starting.", headers=headers)

    async def _home(self, _: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": self.path})

    async def _elsewhere(self, request: web.Request) -> web.Response:
        text = self._templates.get_template("elsewhere.html").render(path=request.path, home=self.path)
        return web.Response(status=404, text=text, content_type="text/html")

    async def _show(self, request: web.Request) -> web.Response:
        if request.path != self.path:
            return await self._elsewhere(request)
        view = page_view(self._director)
        text = self._templates.get_template("pull.html").render(view=view, people=PEOPLE, failures=CATALOGUE.values())
        return web.Response(text=text, content_type="text/html")

    async def _parts(self, request: web.Request) -> web.Response:
        """The changing parts as JSON; 304 when they are as the browser has them."""
        view = page_view(self._director)
        shown = {name: self._templates.get_template(f"_{name}.html").render(view=view) for name in PARTS}
        body = json.dumps(shown).encode()
        tag = f'"{hashlib.sha256(body).hexdigest()}"'
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers={"ETag": tag})
        return web.Response(body=body, content_type="application/json", headers={"ETag": tag})

    async def _show_log(self, request: web.Request) -> web.Response:
        number = request.match_info["job"]
        job = self._director.repo.jobs.get(int(number)) if number.isdecimal() else None
        if job is None:
            return await self._elsewhere(request)
        text = self._templates.get_template("log.html").render(job=job, lines=log_lines(job.log), home=self.path)
        return web.Response(text=text, content_type="text/html")

    async def _act(self, request: web.Request) -> web.Response:
        action = self._actions.get(request.match_info["action"])
        if action is None:
            raise web.HTTPNotFound
        try:
            asked = json.loads(await request.read())
        except ValueError:
            raise web.HTTPBadRequest(text="not JSON") from None
        if not isinstance(asked, dict):
            raise web.HTTPBadRequest(text="not an object")
        try:
            said = await action({str(name): str(value) for name, value in asked.items()})
        except KeyError as error:
            raise web.HTTPBadRequest(text=f"missing or unknown: {error}") from None
        self._director.said = said
        return web.json_response({"text": said.text, "tone": said.tone})


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    host = request.host.partition(":")[0]
    if host not in _LOOPBACK or (request.method == "POST" and "X-Demo" not in request.headers):
        raise web.HTTPForbidden(text="This page answers only to itself, on loopback.")
    answer = await handler(request)
    answer.headers["Content-Security-Policy"] = _CSP
    answer.headers["X-Content-Type-Options"] = "nosniff"
    answer.headers["Referrer-Policy"] = "no-referrer"
    answer.headers.setdefault("Cache-Control", "no-store")
    return answer
