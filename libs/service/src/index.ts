export { loadEnv } from './env.js';
export { createMetrics, readiness, startHealthServer } from './health.js';
export type { HealthServer, Readiness, ReadinessCheck } from './health.js';
export { createLogger, logLevels, NestLogger } from './logger.js';
export type { LogLevel } from './logger.js';
export { onShutdown } from './shutdown.js';
