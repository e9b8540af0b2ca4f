export { describeAccess } from './access-walk.js';
export { allowErrors, expectErrors, recordError } from './error-log.js';
export { describeWhere } from './describe-where.js';
export { errorOf } from './error-of.js';
export { runs } from './law-runs.js';
export { freePort, ownPorts } from './free-port.js';
export { inTransactionBeside, lockWaits, untilLockWaits, waitersForTurn } from './lock-waits.js';
export { keepOutput, loggedOf } from './logged-requests.js';
export type { Answered } from './logged-requests.js';
export { lokiLacks, startLoki } from './loki.js';
export type { Loki } from './loki.js';
export { baseTree, cachePath, chromiumPath, hostsLack } from './machine.js';
export { startSshHost } from './ssh-host.js';
export type { SshHost, SshHostOptions } from './ssh-host.js';
export { findNatsServer } from './find-nats-server.js';
export { startNats } from './nats-server.js';
export type { NatsServer } from './nats-server.js';
export { OidcProvider } from './oidc-provider.js';
export type { OidcPerson, OidcSecretMethod, OidcTrouble } from './oidc-provider.js';
export { onOtherClock } from './other-clock.js';
export { aTeam, OwnerOfTeams } from './owner-of-teams.js';
export { Bystander } from './bystander.js';
export { aDayThatLasts } from './day-that-lasts.js';
export { deadlocksOf } from './deadlocks-of.js';
export { endConnections } from './end-connections.js';
export { spawnTypescript, typescriptHooks } from './spawn-typescript.js';
export type { SpawnedProcess } from './spawn-typescript.js';
export type { ContainerEngine } from './container-engine.js';
export { dockerLacks, startDocker } from './docker.js';
export { podmanImage, podmanLacks, startPodman } from './podman.js';
export type { Podman } from './podman.js';
export { removeLeftPodmanFolders, type PodmanOptions } from './podman-folder.js';
export { createDatabase, createDatabaseFrom, startPostgres } from './postgres.js';
export { makeServerFolder, removeAbandonedServerFolders } from './server-folder.js';
export { mostRowsRead } from './most-rows-read.js';
export { mustEnd } from './must-end.js';
export { codeWhenSuspendedMeanwhile } from './suspended-meanwhile.js';
export { allStatementsDuring, beforeStatement, statementsOf } from './statements-of.js';
export type { TestDatabase, TestPostgres } from './postgres.js';
export { childrenOf } from './process-tree.js';
export {
  BareServiceUnderTest,
  contextOf,
  memberOf,
  operator,
  ServiceUnderTest,
  startServiceUnderTest,
} from './service-under-test.js';
export type { StartedService } from './service-under-test.js';
export { hasTestFailed } from './test-failed.js';
export { timeoutFactor } from './timeout-factor.js';
