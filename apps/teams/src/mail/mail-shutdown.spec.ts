import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Transactions } from '@atoll/database';
import { LinkTokens } from '../tokens/link-tokens.js';
import { TokenBuckets } from '../tries/token-buckets.js';
import { TeamsFixture } from '../teams-fixture.js';
import { TeamsSettings } from '../teams-settings.js';
import { MailServer } from './mail-server-fixture.js';
import { MailSender } from './mail-sender.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

/** A sender of its own, as another process of the service has one. */
const senderTo = (smtpUrl: string, settings: Partial<TeamsSettings> = {}): MailSender =>
  new MailSender(fixture.get(Transactions), fixture.get(LinkTokens), fixture.get(TokenBuckets), {
    ...fixture.get(TeamsSettings),
    ...settings,
    smtpUrl,
  });

const addMail = (address: string) =>
  fixture.query(`INSERT INTO mail (id, kind, address, data) VALUES ($1, 'notice', $2, '{"event": "new_device"}')`, [
    randomUUID(),
    address,
  ]);

/** A mail server that goes on answering the first command after its greeting, and never comes to an end. */
async function startEndless() {
  const asked = Promise.withResolvers<Socket>();
  const askedAgain = Promise.withResolvers<void>();
  let mails = 0;
  const server = createServer((socket) => {
    if ((mails += 1) === 2) askedAgain.resolve();
    socket.on('error', () => undefined).write('220 mail.example.com\r\n');
    socket.once('data', () => {
      const more = setInterval(() => socket.write('250-and\r\n'), 100);
      socket.once('close', () => clearInterval(more));
      asked.resolve(socket);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    server,
    url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: asked.promise,
    askedAgain: askedAgain.promise,
  };
}

it('a stop does not wait for a mail server that hangs, and the mail is sent by the next start', async () => {
  const address = `${randomUUID()}@example.com`;
  await addMail(address);
  const { server, url, asked } = await startEndless();
  const stopped = senderTo(url);
  stopped.onApplicationBootstrap();
  const socket = await asked;
  await stopped.onModuleDestroy();
  socket.destroy();
  server.close();

  await fixture.query('UPDATE mail SET due_at = now() WHERE address = $1', [address]);
  const good = await MailServer.start();
  const next = senderTo(good.url);
  next.onApplicationBootstrap();
  expect((await good.to(address))[0]?.text).toContain('a network that is new to it');
  // A stop breaks off what is not answered within 2 s: the answer of the mail server is taken before.
  while ((await fixture.query('SELECT FROM mail WHERE address = $1', [address])).length > 0) await delay(25);
  await next.onModuleDestroy();
  await good.stop();
});

it('a mail server that never comes to an end is left, and the next mail has its turn', async () => {
  await addMail(`${randomUUID()}@example.com`);
  await addMail(`${randomUUID()}@example.com`);
  const { server, url, askedAgain } = await startEndless();
  const sender = senderTo(url, { mailPatienceMs: 300, mailsAtOnce: 1 });
  sender.onApplicationBootstrap();
  await askedAgain;
  await sender.onModuleDestroy();
  server.close();
});
