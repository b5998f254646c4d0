# corpusveil in the versions of uv.lock, for Kubernetes and for machines that run containers.
# Build: docker build --tag corpusveil .   Other extras: --build-arg EXTRAS="--extra en --extra spans --extra s3 --extra spark --extra jre"
# Pin PYTHON and UV to digests to build the same image again.
ARG PYTHON=python:3.12-slim-bookworm
ARG UV=ghcr.io/astral-sh/uv:0.13.8

FROM ${UV} AS uv

FROM ${PYTHON} AS build
ARG EXTRAS="--extra en --extra spans --extra s3 --extra gcs --extra azure"
COPY --from=uv /uv /usr/local/bin/uv
ENV UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=/opt/corpusveil
WORKDIR /source
COPY pyproject.toml uv.lock README.md LICENSE ./
# The dependencies first: a layer that a change of the code leaves alone.
# hadolint ignore=SC2086
RUN uv sync --frozen --no-dev --no-install-workspace ${EXTRAS}
COPY corpusveil ./corpusveil
COPY spaces ./spaces
COPY spans ./spans
# hadolint ignore=SC2086
RUN uv sync --frozen --no-dev --no-editable ${EXTRAS}

FROM ${PYTHON}
COPY --from=build /opt/corpusveil /opt/corpusveil
ENV PATH=/opt/corpusveil/bin:$PATH PYTHONUNBUFFERED=1
RUN useradd --uid 10001 --user-group --create-home corpusveil
USER 10001
WORKDIR /home/corpusveil
ENTRYPOINT ["corpusveil"]
CMD ["--help"]
