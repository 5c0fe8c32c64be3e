# The server in a container: docker build -t cinnabar . ; docs/operating.md has the commands that run it.
#
# In a container the server has to listen on every address, or nothing could reach it. So publish 7650 and 7651 on loopback
# (-p 127.0.0.1:7650:7650): passwords are not seen on the way (scram-sha-256), values are. Others come by TLS:
# CINNABAR_TLS_CERT, CINNABAR_TLS_KEY and CINNABAR_LISTEN_TLS or CINNABAR_LISTEN_HTTPS.
#
# host.* measures what the container sees: CPU, memory and disks are the machine's, processes and network its own.

FROM node:22-bookworm AS build
WORKDIR /opt/cinnabar
COPY package.json package-lock.json ./
# `prepare` would build what is not there yet. Only esbuild needs a script of its own: better-sqlite3 12, which has one too, is for
# Node 20, and version 13 contains its binary.
RUN npm ci --ignore-scripts && npm rebuild esbuild
COPY . .
RUN npm run build && npm prune --omit=dev --ignore-scripts

FROM node:22-bookworm-slim
WORKDIR /opt/cinnabar
COPY --from=build /opt/cinnabar/package.json ./
COPY --from=build /opt/cinnabar/node_modules node_modules
COPY --from=build /opt/cinnabar/dist dist
# So that `docker exec` has the command `cinnabar`; and the directory whose owner a new volume takes over.
RUN chmod +x dist/cli/main.js \
  && ln -s /opt/cinnabar/dist/cli/main.js /usr/local/bin/cinnabar \
  && install -d -m 700 -o node -g node /var/lib/cinnabar

# With an arena of malloc for each thread, as glibc makes them, the server takes 6 to 9 MiB more.
ENV MALLOC_ARENA_MAX=2

# The command line's own user `local` is admitted by listeners on loopback only, so not here: log in as `admin`.
# gmetric and smon are taken from loopback only until CINNABAR_GMETRIC_ALLOW and CINNABAR_SMON_ALLOW name networks.
ENV CINNABAR_PRODUCER_DATA_DIR=/var/lib/cinnabar \
    CINNABAR_LISTEN_TCP=0.0.0.0:7650 \
    CINNABAR_LISTEN_HTTP=0.0.0.0:7651 \
    CINNABAR_GMETRIC_LISTEN=0.0.0.0:8649 \
    CINNABAR_SMON_TCP=0.0.0.0:2606
VOLUME /var/lib/cinnabar
EXPOSE 7650 7651 8649/udp 2606

USER node
STOPSIGNAL SIGTERM
# Healthy is what also stores: a server on a full disk is not.
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:7651/readyz').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/cli/main.js", "serve"]
