import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { NatsConnection } from '@nats-io/transport-node';
import { array, asyncProperty, assert, constantFrom, integer, nat, record, string } from 'fast-check';
import { systemContext } from './call-context.js';
import { messagesOf, received, type Captured, type Maker } from './hostile-fixture.js';
import { textOf } from './json.js';
import { ReplyAssembly, ReplySender } from './nats-reply.js';
import { Signer } from './signature.js';
import { specSecret as secret } from './transports-fixture.js';

const genuine: Maker = { secret, service: 'probe', request: 'signature of the request', partBytes: 8 };

function assemble(messages: readonly Captured[]): (string | undefined)[] {
  const assembly = new ReplyAssembly(new Signer(secret), 'probe', genuine.request);
  return messages.flatMap((message) => {
    const answer = assembly.add(received(message));
    return typeof answer === 'string' ? [] : [answer.json && textOf(answer.json)];
  });
}

/** What somebody makes of a message who does not hold the secret. */
const changes: ((message: Captured) => Captured)[] = [
  ({ data, ...message }) => ({ ...message, data: Buffer.concat([data, Buffer.from(' ')]) }),
  ({ marks, ...message }) => ({ ...message, marks: { ...marks, 'Atoll-Reply': 'error' } }),
  ({ marks, ...message }) => ({ ...message, marks: { ...marks, 'Atoll-Part': '1/1' } }),
  ({ marks, ...message }) => ({ ...message, marks: { ...marks, 'Atoll-Part': '1/2' } }),
  ({ marks, ...message }) => ({ ...message, marks: { ...marks, 'Atoll-Part': '2/2' } }),
  ({ marks, ...message }) => ({ ...message, marks: { ...marks, 'Atoll-Signature': '' } }),
  (message) => ({ ...message, reply: '_INBOX.elsewhere' }),
];

describe('an answer put together from its messages', () => {
  it('law: whatever is sent along, in whatever order, it is one that the owner gave to this request, or none', async () => {
    const texts = record({
      mine: string({ maxLength: 40 }),
      again: string({ maxLength: 40 }),
      other: string({ maxLength: 40 }),
    });
    const picks = array(record({ from: nat(), change: integer({ min: -1, max: changes.length - 1 }) }), {
      maxLength: 30,
    });
    const makers = constantFrom<Partial<Maker>>(
      { request: 'another request' },
      { service: 'other' },
      { secret: 'another secret, guessed' },
    );
    await assert(
      asyncProperty(texts, makers, picks, async ({ mine, again, other }, maker, chosen) => {
        // The same request may have been handled twice, since it was copied to another replica: then it has two genuine
        // answers.
        const own = await Promise.all([mine, again].map((json) => messagesOf({ json }, genuine)));
        const pool = [...own.flat(), ...(await messagesOf({ json: other }, { ...genuine, ...maker }))];
        const sent = chosen.map(({ from, change }) => {
          const message = pool[from % pool.length]!;
          return changes[change]?.(message) ?? message;
        });
        for (const answer of assemble(sent)) expect([mine, again]).toContain(answer);
      }),
      { numRuns: 500 },
    );
  });

  it('law: the genuine messages in their order give the answer, whatever somebody without the secret sends between them', async () => {
    const picks = array(record({ at: nat(), from: nat(), change: nat() }), { maxLength: 20 });
    await assert(
      asyncProperty(string({ maxLength: 60 }), picks, async (json, chosen) => {
        const messages = await messagesOf({ json }, genuine);
        const sent = messages.map((message) => [message]);
        for (const { at, from, change } of chosen) {
          const copy = messages[from % messages.length]!;
          // What is sent before a message; a change that is none to this very message leaves a copy of it.
          sent[at % sent.length]!.unshift(changes[change % changes.length]!(copy), ...(from < at ? [copy] : []));
        }
        expect(assemble(sent.flat())[0]).toBe(json);
      }),
      { numRuns: 500 },
    );
  });

  it('takes a part once, in its place', async () => {
    const [one, two, three] = (await messagesOf({ json: '{"text":"three parts"}' }, genuine)) as [
      Captured,
      Captured,
      Captured,
    ];
    expect(assemble([one, two, three])).toEqual(['{"text":"three parts"}']);
    expect(assemble([one, one, two, two, one, three])).toEqual(['{"text":"three parts"}']);
    for (const wrong of [
      [one, three, two],
      [two, one, three],
      [three, two, one],
      [two, three],
      [one, three],
    ])
      expect(assemble(wrong)).toEqual([]);
    expect(assemble([three, one, three, two, three])).toEqual(['{"text":"three parts"}']);
  });

  it('is never made of parts of two answers to one request', async () => {
    const [first, second] = await Promise.all(
      ['{"a":"aaaaaaaaaaaa"}', '{"b":"bbbbbbbbbbbb"}'].map((json) => messagesOf({ json }, genuine)),
    );
    expect(assemble([first![0]!, second![1]!, second![2]!])).toEqual([]);
    expect(assemble([first![0]!, second![1]!, first![1]!, second![2]!, first![2]!])).toEqual(['{"a":"aaaaaaaaaaaa"}']);
  });
});

describe('a service that answers', () => {
  /** In which turn of the event loop each message was sent. */
  let sentIn: number[];
  let turn: number;
  let next: NodeJS.Immediate;
  const countTurns = () => {
    turn += 1;
    next = setImmediate(countTurns);
  };
  beforeEach(() => {
    sentIn = [];
    turn = 0;
    countTurns();
  });
  afterEach(() => clearImmediate(next));

  const sender = new ReplySender('probe', new Signer(secret));
  const connection = {
    info: { max_payload: 8 + 1024 },
    publish: () => void sentIn.push(turn),
    request: async () => void sentIn.push(turn),
  } as unknown as NatsConnection;
  const send = (json: string) =>
    sender.send(connection, { inbox: '_INBOX.1', signature: '', context: systemContext('spec') }, { json });

  it('sends together what it answers in one turn of the event loop, when that ends', async () => {
    const answerAfter = async (ticks: number) => {
      for (let tick = 0; tick < ticks; tick += 1) await Promise.resolve();
      await send('{}');
    };
    const answering = Promise.all([0, 3, 9].map(answerAfter));
    for (let tick = 0; tick < 30; tick += 1) await Promise.resolve();
    expect(sentIn).toEqual([]);
    await answering;
    expect([sentIn.length, new Set(sentIn).size]).toEqual([3, 1]);
  });

  it('sends a part of a long answer in each turn, so that others get theirs', async () => {
    await send('{"text":"some parts of eight bytes, a window and more"}');
    expect(sentIn.length).toBeGreaterThan(4);
    expect(new Set(sentIn).size).toBe(sentIn.length);
  });
});
