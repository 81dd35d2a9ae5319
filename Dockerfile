# syntax=docker/dockerfile:1
# Build: the locked dependencies and the packages, compiled, in a virtual environment of their own.
FROM python:3.12-slim-trixie AS build
RUN pip install --no-cache-dir uv==0.13.9
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=/opt/mlm
WORKDIR /src
COPY pyproject.toml uv.lock README.md LICENSE ./
RUN uv sync --frozen --no-dev --no-install-project
COPY bot ./bot
COPY handlers ./handlers
COPY analyzers ./analyzers
COPY config ./config
# The first analysis keeps the parsed rules beside the compiled modules; the running image writes nothing there.
RUN uv sync --frozen --no-dev --no-editable && /opt/mlm/bin/mlm analyze README.md > /dev/null

# Run: nothing but Python and that environment; an unprivileged user; only the data directory is written to.
FROM python:3.12-slim-trixie
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/mlm mlm
COPY --from=build /opt/mlm /opt/mlm
ENV PATH=/opt/mlm/bin:$PATH PYTHONDONTWRITEBYTECODE=1 MLM_HOST=0.0.0.0 MLM_PORT=8080 MLM_DATA_DIR=/var/lib/mlm
USER 10001
WORKDIR /var/lib/mlm
VOLUME /var/lib/mlm
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f'http://127.0.0.1:{os.environ[\"MLM_PORT\"]}/healthz', timeout=4)"]
STOPSIGNAL SIGTERM
CMD ["mlm", "serve"]
