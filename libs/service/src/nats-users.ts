import { declaredEvents } from '@atoll/contracts';
import { consumerNames, eventStream } from '@atoll/events';

/** What one user of NATS may do: subjects, with the wildcards of NATS. */
export interface NatsUser {
  readonly name: string;
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

/** The key-value bucket of NATS in which gateways share their rate limits. */
export const limitsBucket = 'atoll_rate_limits';

/**
 * The users of a deployment, one for each service and one for the gateways: what their contracts name, and no more. So
 * whoever has the credential of one service can call as it calls and publish its events, and can neither read the
 * answers that others get nor answer or publish in their place. Events and their consumers are those that are loaded in
 * this process.
 */
export function natsUsers(services: readonly string[]): NatsUser[] {
  // Who consumes the events of a service that is not deployed asks for them all the same.
  const calls = [...new Set([...services, ...declaredEvents().map(({ service }) => service)])]
    .toSorted()
    .map((service) => `${service}.>`);
  return [
    {
      name: 'gateway',
      publish: [...calls, ...asAnybody('gateway'), ...rateLimits()],
      subscribe: [...inboxes('gateway'), 'broadcast.>'],
    },
    ...services.map((name) => ({
      name,
      publish: [
        ...calls,
        ...asAnybody(name),
        `broadcast.${name}.>`,
        `events.${name}.>`,
        ...openEvents(),
        ...stream(),
        ...durables(name),
      ],
      subscribe: [...inboxes(name), `${name}.>`, 'broadcast.>'],
    })),
  ];
}

/**
 * The block `authorization` of a configuration of nats-server; each password is given as the configuration is to have
 * it.
 */
export function natsAuthorization(users: readonly NatsUser[], passwordOf: (name: string) => string): string {
  const blocks = users.map(
    ({ name, publish, subscribe }) =>
      `  { user: ${name}, password: ${passwordOf(name)}, permissions: {\n` +
      `    publish: ${JSON.stringify(publish)}\n    subscribe: ${JSON.stringify(subscribe)}\n  } }`,
  );
  return `authorization {\n users: [\n${blocks.join('\n')}\n ]\n}\n`;
}

/** Answers and receipts in the own name, and the question whether others share the secret of the bus. */
function asAnybody(name: string): string[] {
  return [`_INBOX.*.*.${name}.*`, 'hello'];
}

function inboxes(name: string): string[] {
  return [`_INBOX.${name}.>`, 'hello'];
}

/** Events that any service may publish. */
function openEvents(): string[] {
  return declaredEvents()
    .flatMap(({ name, publishers }) => (publishers === 'any' ? [`events.${name}`] : []))
    .toSorted();
}

/** To create the stream of events, to see how full it is, and to delete what all have acknowledged. */
function stream(): string[] {
  const actions = ['STREAM.INFO', 'STREAM.CREATE', 'STREAM.UPDATE', 'STREAM.PURGE', 'CONSUMER.LIST'];
  return actions.map((action) => `$JS.API.${action}.${eventStream}`);
}

/** A wildcard of NATS is a whole token, so each durable consumer is named. */
function durables(service: string): string[] {
  return consumerNames().flatMap((consumer) => {
    const durable = `${eventStream}.${service}_${consumer}`;
    return [
      `$JS.API.CONSUMER.INFO.${durable}`,
      `$JS.API.CONSUMER.CREATE.${durable}`,
      `$JS.API.CONSUMER.CREATE.${durable}.>`,
      `$JS.API.CONSUMER.DURABLE.CREATE.${durable}`,
      `$JS.API.CONSUMER.MSG.NEXT.${durable}`,
      `$JS.ACK.${durable}.>`,
    ];
  });
}

function rateLimits(): string[] {
  const kv = `KV_${limitsBucket}`;
  return [
    `$KV.${limitsBucket}.>`,
    '$JS.API.INFO',
    ...['STREAM.INFO', 'STREAM.CREATE', 'STREAM.UPDATE', 'STREAM.MSG.GET', 'DIRECT.GET'].map(
      (action) => `$JS.API.${action}.${kv}`,
    ),
    `$JS.API.DIRECT.GET.${kv}.>`,
  ];
}
