import { natsAuthorization, natsUsers } from '@atoll/service';
import { serviceDefinitions } from './service-definitions.js';

/**
 * `npm run --silent nats-users`: the users of NATS for the services that were built, one each, as a block of the configuration of
 * nats-server. Passwords are variables of its environment, such as `$ATOLL_NATS_PASSWORD_TEAMS`.
 */
const services = (await serviceDefinitions()).map(({ name }) => name);
console.log(natsAuthorization(natsUsers(services), (name) => `$ATOLL_NATS_PASSWORD_${name.toUpperCase().replaceAll('-', '_')}`));
