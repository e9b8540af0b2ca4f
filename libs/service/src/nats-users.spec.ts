import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startNats, type NatsServer } from '@atoll/testing';
import { eventStream, OnEvent } from '@atoll/events';
import { teamUpdated, type TeamUpdate } from '@atoll/contracts/teams';
import { NatsLink } from '@atoll/rpc';
import { natsAuthorization, natsUsers } from './nats-users.js';

/** Declares the consumer `shelf`. */
class _Shelf {
  @OnEvent(teamUpdated, { consumer: 'shelf' })
  async take(_update: TeamUpdate): Promise<void> {}
}

type NatsConnection = Awaited<ReturnType<NatsLink['connected']>>;

const services = ['billing', 'teams'];
const passwordOf = (name: string) => JSON.stringify(`1 password of ${name}`);

describe('the NATS user of a service', () => {
  let server: NatsServer;
  const links: NatsLink[] = [];
  const connections = new Map<string, NatsConnection>();
  const violations = new Map<string, string[]>();

  beforeAll(async () => {
    server = await startNats({ configuration: natsAuthorization(natsUsers(services), passwordOf) });
    for (const user of ['gateway', ...services]) {
      const link = NatsLink.open({
        servers: server.url,
        name: user,
        connection: { user, pass: JSON.parse(passwordOf(user)) as string },
      });
      links.push(link);
      const connection = await link.connected();
      connections.set(user, connection);
      const seen: string[] = [];
      violations.set(user, seen);
      void (async () => {
        for await (const event of connection.status()) if (event.type === 'error') seen.push(event.error.message);
      })();
    }
  });
  afterAll(async () => {
    for (const link of links) await link.close();
    await server.stop();
  });

  const as = (user: string): NatsConnection => {
    const connection = connections.get(user);
    if (!connection) throw new Error(`${user} is not connected.`);
    return connection;
  };
  /** What the server refuses of this; it answers in order, so all of it is known after a round trip. */
  async function refused(user: string, work: (connection: NatsConnection) => void): Promise<string[]> {
    violations.get(user)?.splice(0);
    work(as(user));
    await as(user).flush();
    await as(user).flush();
    return violations.get(user) ?? [];
  }
  const publish = (user: string, subject: string) => refused(user, (connection) => connection.publish(subject, 'x'));
  const subscribe = (user: string, subject: string) =>
    refused(user, (connection) => connection.subscribe(subject, { callback: () => undefined }));

  it('reads its own answers, and those of nobody else', async () => {
    expect(await subscribe('billing', '_INBOX.billing.>')).toEqual([]);
    for (const inbox of ['_INBOX.gateway.>', '_INBOX.teams.>', '_INBOX.*.*.billing.*', '_INBOX.>', '>']) {
      expect(await subscribe('billing', inbox)).toHaveLength(1);
    }
    expect(await subscribe('gateway', '_INBOX.billing.>')).toHaveLength(1);
  });

  it('answers in its own name, and in that of nobody else', async () => {
    expect(await publish('billing', '_INBOX.gateway.abc.billing.1')).toEqual([]);
    expect(await publish('billing', '_INBOX.gateway.abc.teams.1')).toHaveLength(1);
    expect(await publish('gateway', '_INBOX.billing.abc.teams.1')).toHaveLength(1);
  });

  it('publishes its own events and broadcasts, and those of nobody else', async () => {
    for (const subject of [
      'events.billing.price_changed',
      'events.teams.team_deletion_answered',
      'broadcast.billing.x',
    ]) {
      expect(await publish('billing', subject)).toEqual([]);
    }
    for (const subject of ['events.teams.team_changed', 'broadcast.teams.credentials_changed']) {
      expect(await publish('billing', subject)).toHaveLength(1);
      expect(await publish('gateway', subject)).toHaveLength(1);
    }
  });

  it('calls every service, and takes the calls of itself alone', async () => {
    expect(await publish('billing', 'teams.directory.page.abc')).toEqual([]);
    expect(await subscribe('billing', 'billing.>')).toEqual([]);
    expect(await subscribe('billing', 'teams.>')).toHaveLength(1);
    expect(await subscribe('gateway', 'teams.>')).toHaveLength(1);
  });

  it('has its own consumers of the stream, and neither touches those of others nor deletes anything', async () => {
    const api = (action: string) => `$JS.API.${action}`;
    for (const allowed of [
      `STREAM.INFO.${eventStream}`,
      `CONSUMER.CREATE.${eventStream}.billing_shelf.events.teams.>`,
    ]) {
      expect(await publish('billing', api(allowed))).toEqual([]);
    }
    for (const refusedAction of [
      `STREAM.DELETE.${eventStream}`,
      `STREAM.MSG.DELETE.${eventStream}`,
      `CONSUMER.DELETE.${eventStream}.billing_shelf`,
      `CONSUMER.CREATE.${eventStream}.teams_shelf.events.teams.>`,
      `CONSUMER.MSG.NEXT.${eventStream}.teams_shelf`,
    ]) {
      expect(await publish('billing', api(refusedAction))).toHaveLength(1);
    }
    expect(await publish('billing', `$JS.ACK.${eventStream}.teams_shelf.1.1.1.1.1`)).toHaveLength(1);
  });
});
