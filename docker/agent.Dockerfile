# The agent, in two sizes: `headless` has a headless shell, `headed` a full Chromium on a display of
# its own. Without a target it is the headless one that is built.
#   docker build -f docker/agent.Dockerfile --target headless -t tabfarm/agent .
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

FROM ${BASE} AS machine
# More scripts need more fonts: --build-arg FONTS="fonts-liberation fonts-noto-cjk".
ARG FONTS="fonts-liberation fonts-noto-color-emoji"
# To record video: --build-arg VIDEO=ffmpeg.
ARG VIDEO=""
# libatomic1: the Node.js that Playwright brings along links to it.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates libatomic1 python3 tini ${FONTS} ${VIDEO} \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --create-home agent
ENV PATH=/opt/tabfarm/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1
WORKDIR /home/agent
STOPSIGNAL SIGTERM

FROM machine AS headed
RUN apt-get update \
    && apt-get install -y --no-install-recommends chromium jwm xvfb \
    && rm -rf /var/lib/apt/lists/*
COPY docker/headed.sh docker/agent_health.py /usr/local/bin/
COPY --from=packages /opt/tabfarm /opt/tabfarm
COPY --from=project /out /
ENV AGENT_HEADED=1
USER 10001:10001
HEALTHCHECK --interval=15s --timeout=5s --start-period=45s --retries=3 \
    CMD ["/opt/tabfarm/bin/python", "/usr/local/bin/agent_health.py"]
ENTRYPOINT ["/usr/bin/tini", "-s", "--", "/usr/local/bin/headed.sh"]
CMD ["farm-agent"]

FROM machine AS headless
RUN apt-get update \
    && apt-get install -y --no-install-recommends chromium-headless-shell \
    && rm -rf /var/lib/apt/lists/*
COPY docker/agent_health.py /usr/local/bin/
COPY --from=packages /opt/tabfarm /opt/tabfarm
COPY --from=project /out /
USER 10001:10001
HEALTHCHECK --interval=15s --timeout=5s --start-period=45s --retries=3 \
    CMD ["/opt/tabfarm/bin/python", "/usr/local/bin/agent_health.py"]
ENTRYPOINT ["/usr/bin/tini", "-s", "--"]
CMD ["farm-agent"]
