export { errorOf } from './error-of.js';
export { runs } from './law-runs.js';
export { freePort } from './free-port.js';
export { findNatsServer } from './find-nats-server.js';
export { startNats } from './nats-server.js';
export type { NatsServer, NatsServerOptions } from './nats-server.js';
export { aTeam, OwnerOfTeams } from './owner-of-teams.js';
export { createDatabase, startPostgres } from './postgres.js';
export type { TestDatabase, TestPostgres } from './postgres.js';
