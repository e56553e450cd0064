# The coordinator.
#   docker build -f docker/farm.Dockerfile -t tabfarm/farm .
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS packages
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY docker/build.lock docker/runtime.lock docker/
# Two environments: one that builds, and one without pip that is taken along.
RUN python3 -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes -r docker/build.lock \
    && python3 -m venv --without-pip /opt/tabfarm \
    && /opt/build/bin/pip --python /opt/tabfarm/bin/python install --no-cache-dir \
        --require-hashes -r docker/runtime.lock

# Only what is ours, at its place under /out: a change of it leaves the layers above alone.
FROM packages AS project
COPY pyproject.toml README.md LICENSE ./
COPY farm farm
COPY agent agent
COPY overlay overlay
RUN /opt/build/bin/pip wheel --no-build-isolation --no-deps -w /tmp/wheel . \
    && /opt/build/bin/pip --python /opt/tabfarm/bin/python install --no-index --no-deps \
        --root /out /tmp/wheel/*.whl

FROM ${BASE}
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3 tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --create-home farm \
    && install -d -m 0700 -o farm -g farm /data /files
COPY docker/farm_health.py /usr/local/bin/
COPY --from=packages /opt/tabfarm /opt/tabfarm
COPY --from=project /out /
ENV PATH=/opt/tabfarm/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1 \
    FARM_HOST=0.0.0.0 \
    FARM_PORT=8700 \
    FARM_DATA_DIR=/data
USER 10001:10001
WORKDIR /home/farm
VOLUME /data
EXPOSE 8700
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=15s --retries=3 \
    CMD ["/opt/tabfarm/bin/python", "/usr/local/bin/farm_health.py"]
ENTRYPOINT ["/usr/bin/tini", "-s", "--"]
CMD ["farm", "serve"]
