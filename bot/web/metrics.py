"""What Prometheus may ask: deliveries and tasks by outcome, how long tasks took, how many wait."""

from __future__ import annotations

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

#: Seconds; a diagnosis of a large artifact takes minutes.
BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

#: Shown from the start, at 0: an alert on an increase does not see the first step of a series that was not there.
TURNED_AWAY = ("bad_signature", "busy", "full", "not_ready", "not_stored")
SWEPT = ("redelivered", "rescanned", "put_off")


class Metrics:
    """The counters of one process, in a registry of their own (two apps in one process do not share them)."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.deliveries = Counter(
            "mlm_deliveries", "Webhook deliveries by outcome", ["event", "outcome"], registry=self.registry
        )
        self.tasks = Counter("mlm_tasks", "Pieces of work by outcome", ["name", "outcome"], registry=self.registry)
        self.task_seconds = Histogram(
            "mlm_task_seconds", "How long a piece of work took", ["name"], buckets=BUCKETS_S, registry=self.registry
        )
        self.queued = Gauge("mlm_queue_depth", "Pieces of work by state, up to 1000", ["state"], registry=self.registry)
        self.database = Gauge("mlm_database_up", "1 while the database takes what we write", registry=self.registry)
        self.github = Counter(
            "mlm_github_answers", "Calls of GitHub by what came of them", ["outcome"], registry=self.registry
        )
        self.troubles = Gauge(
            "mlm_github_troubles", "Troubles with GitHub that go on now, by kind", ["kind"], registry=self.registry
        )
        self.clock = Gauge(
            "mlm_clock_ahead_seconds", "How far the host's clock is ahead of GitHub's", registry=self.registry
        )
        self.sweeps = Counter(
            "mlm_sweep",
            "Missed deliveries asked for again, repositories looked at again",
            ["what"],
            registry=self.registry,
        )
        self.analyses = Counter(
            "mlm_analysis_failures",
            "Jobs whose logs were not read, or not all of them",
            ["reason"],
            registry=self.registry,
        )
        self.rescued = Counter("mlm_rescued", "Pieces of work taken over from a dead process", registry=self.registry)
        for outcome in TURNED_AWAY:
            self.deliveries.labels("", outcome)
        for what in SWEPT:
            self.sweeps.labels(what)

    def render(self) -> web.Response:
        """Return the page in Prometheus's text format."""
        return web.Response(body=generate_latest(self.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})
