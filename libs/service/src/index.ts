export { loadEnv, Variable, variablesOf } from './env.js';
export { observeEvents } from './event-figures.js';
export { requireFreePorts, requireOwnAddress } from './free-port.js';
export type { Listener } from './free-port.js';
export { createMetrics, failuresOf } from './health.js';
export type { ReadinessCheck } from './health.js';
export { environmentWith, loadLocalSecrets, makeDataFolder, newLocalSecrets } from './local-secrets.js';
export type { LocalSecrets } from './local-secrets.js';
export { createLogger, NestLogger } from './logger.js';
export { limitsBucket, natsAuthorization, natsUsers } from './nats-users.js';
export { BusEnv, DataFolderEnv, HttpEnv, ServiceEnv } from './process-env.js';
export { readSettings } from './read-settings.js';
export { runService } from './run-service.js';
export { DecimalNumber, HttpUrl, IpAddress, mostOfAny, ParsedBy } from './setting-fields.js';
export {
  DatabaseUrl,
  defaultHistoryRetentionDays,
  defaultPublicUrl,
  defaultSimulatedHost,
  HistoryRetention,
  KeyPepper,
  PublicUrl,
  SealKeys,
  SimulatedHost,
} from './shared-settings.js';
export { defineService, listenersOf, moduleOf } from './service-definition.js';
export type { FirstStart, ServiceDefinition } from './service-definition.js';
export { resealColumn } from './sealed-columns.js';
export { observeFigures } from './service-figures.js';
export type { ServiceFigure } from './service-figures.js';
export { publicHost, shownHost } from './shown-host.js';
export { onShutdown } from './shutdown.js';
export { onStopSignals } from './stop-signals.js';
export { startService } from './start-service.js';
export type { RunningService } from './start-service.js';
export { inProcessTransport, natsTransport } from './transport.js';
export type { Transport } from './transport.js';
export { version } from './version.js';
