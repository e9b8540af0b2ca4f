import { natsPings } from '@atoll/rpc';
import { natsAuthorization, natsUsers } from '@atoll/service';
import { serviceDefinitions } from './service-definitions.js';

/**
 * The configuration of nats-server for `docker-compose.yml`, as `deploy/nats.conf` has it: JetStream, its health, when
 * it notices a frozen client, and a user for each service that was built. Passwords are variables of its environment,
 * such as `$ATOLL_NATS_PASSWORD_TEAMS`.
 */
export async function natsConfiguration(): Promise<string> {
  const services = (await serviceDefinitions()).map(({ name }) => name);
  const users = natsAuthorization(
    natsUsers(services),
    (name) => `$ATOLL_NATS_PASSWORD_${name.toUpperCase().replaceAll('-', '_')}`,
  );
  return `# Made by: npm run --silent nats-users > deploy/nats.conf\n# For its own health check alone: it has no users.\nhttp: 127.0.0.1:8222\njetstream { store_dir: /data }\n${natsPings}${users.trim()}\n`;
}

// `npm run --silent nats-users` prints it.
if (import.meta.main) process.stdout.write(await natsConfiguration());
