import { Type } from 'class-transformer';
import { IsIn, IsInt, IsString, Max, Min, MinLength } from 'class-validator';
import { createLogger, createMetrics, loadEnv, logLevels, natsTransport, onShutdown, type LogLevel } from '@atoll/service';
import { createGateway, GatewayEnv, optionsFrom } from './create-gateway.js';

class Env extends GatewayEnv {
  @Type(() => Number)
  @IsInt({ message: 'PORT must be a port' })
  @Min(0)
  @Max(65_535)
  PORT: number = 3000;

  @IsString()
  HOST: string = '127.0.0.1';

  /** Comma-separated. */
  @IsString()
  NATS_URL: string = 'nats://127.0.0.1:4222';

  @MinLength(16, { message: 'ATOLL_BUS_SECRET must be at least 16 characters long' })
  ATOLL_BUS_SECRET: string = '';

  @MinLength(16, { message: 'ATOLL_KEY_PEPPER must be at least 16 characters long' })
  ATOLL_KEY_PEPPER: string = '';

  @IsIn([...logLevels])
  ATOLL_LOG_LEVEL: LogLevel = 'info';
}

try {
  const env = loadEnv(Env);
  const logger = createLogger({ service: 'gateway', level: env.ATOLL_LOG_LEVEL });
  const transport = natsTransport({ servers: env.NATS_URL, name: 'gateway', secrets: env.ATOLL_BUS_SECRET });
  const gateway = await createGateway({
    ...optionsFrom(env),
    rpc: transport.rpc,
    keyPepper: env.ATOLL_KEY_PEPPER,
    logger,
    metrics: createMetrics('gateway'),
    readinessChecks: transport.checks,
  });
  onShutdown(logger, async () => {
    await gateway.close();
    await transport.close();
  });
  await gateway.listen(env.PORT, env.HOST);
  logger.info({ port: env.PORT, host: env.HOST }, 'ready');
} catch (error) {
  console.error(`gateway cannot start: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
