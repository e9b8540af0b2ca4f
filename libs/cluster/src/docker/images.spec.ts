import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { eventually } from '../contract/cluster-under-test-fixture.js';
import type { PodRun, RunRef } from '../objects.js';
import { Engine } from './engine.js';
import { FakeEngine, plainPod } from './fake-engine-fixture.js';
import { Images } from './images.js';
import { Names } from './names.js';

const soon = () => AbortSignal.timeout(60_000);

let engine: FakeEngine;
/** The pulls that the engine was asked for, each image, and what ends its pull. */
let pulls: { image: string; response: ServerResponse }[];
/** What the images that the engine has say of themselves. */
let configs: Map<string, object>;
let changes: EventEmitter;
/** Answers whether a run is wanted, by `one-a`, which another process may change; one that is not here is wanted. */
let answers: Map<string, () => Promise<boolean>>;
let pullTurnMs = 60_000;
beforeEach(async () => {
  [pulls, configs, changes, answers] = [[], new Map(), new EventEmitter(), new Map()];
  engine = await FakeEngine.start(
    ({ url }, response) => {
      const { pathname, searchParams } = new URL(url, 'http://engine');
      const config = configs.get(/images\/(.+)\/json$/.exec(pathname)?.[1] ?? '');
      if (config) return void response.end(JSON.stringify({ Config: config }));
      const image = searchParams.get('fromImage');
      if (image === null) return void response.writeHead(404).end('{"message":"No such object"}');
      pulls.push({ image, response: response.on('close', () => changes.emit('change')) });
      // The registry answers nothing until the spec says so.
      response.writeHead(200).flushHeaders();
      changes.emit('change');
    },
    { pullReviewMs: 5, pullTurnMs },
  );
});
afterEach(() => engine.stop());

const refOf = (id: string): RunRef => ({ kind: 'pod', id, run: 1 });
const podOf = (teamId: string, image: string, requestedBy: string | null = null): PodRun =>
  plainPod({ ref: refOf(`${teamId}-${image}`), owner: { teamId, workspaceId: teamId }, requestedBy, image });
const want = async (teamId: string, ...images: string[]): Promise<void> => {
  for (const image of images) {
    const isWanted = () => answers.get(`${teamId}-${image}`)?.() ?? Promise.resolve(true);
    await engine.driver.startPod(podOf(teamId, image), isWanted, soon());
  }
};
const stop = (teamId: string, image: string) => engine.driver.stopPod(refOf(`${teamId}-${image}`), 0, soon());
/** Sorted, since each pull has a connection of its own. */
const pulled = (from = 0) =>
  pulls
    .slice(from)
    .map(({ image }) => image)
    .toSorted();
const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await once(changes, 'change', { signal: soon() });
};
const end = (image: string) => pulls.find((pull) => pull.image === image)?.response.end();

it('a team whose registries answer nothing pulls two images at once; others, and the platform, pull meanwhile', async () => {
  await want('slow', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j');
  await want('other', 'o');
  const [ref, owner] = [{ kind: 'door', id: 'svc-1', run: 1 } as const, { teamId: 'slow', workspaceId: 'slow' }];
  const opening = { transport: 'tcp', port: 80, externalPort: 30_086, tls: null } as const;
  await engine.driver.openDoor({ ref, owner, podId: 'slow-a', ...opening }, soon());
  await until(() => pulls.length >= 4);
  expect(pulled()).toEqual(['a', 'b', 'door', 'o']);
  end('b');
  await until(() => pulls.length >= 5);
  expect(pulled(4)).toEqual(['c']);
});

it('one person of many teams pulls two images at once in all; others of these teams pull meanwhile', async () => {
  const wantBy = (person: string, teamId: string, image: string) =>
    engine.driver.startPod(podOf(teamId, image, person), () => Promise.resolve(true), soon());
  for (const team of ['p', 'q', 'r', 's', 't']) await wantBy('one', team, `${team}1`);
  await wantBy('two', 't', 't1');
  await wantBy('two', 's', 's2');
  await until(() => pulls.length >= 4);
  expect(pulled()).toEqual(['p1', 'q1', 's2', 't1']);
  end('p1');
  await until(() => pulls.length >= 5);
  expect(pulled(4)).toEqual(['r1']);
});

describe('four teams whose registries never end', () => {
  beforeAll(() => void (pullTurnMs = 50));
  afterAll(() => void (pullTurnMs = 60_000));

  it('keep others waiting for a turn of theirs, and have no more than two pulls each', async () => {
    for (const team of ['p', 'q', 'r', 's']) await want(team, `${team}1`, `${team}2`, `${team}3`);
    await want('other', 'o');
    await until(() => pulls.length >= 9);
    expect(pulled()).toEqual(['o', 'p1', 'p2', 'q1', 'q2', 'r1', 'r2', 's1', 's2']);
    // They go on, and one that ends makes room for the next of its team.
    end('p1');
    await until(() => pulls.length >= 10);
    expect(pulled(9)).toEqual(['p3']);
  });
});

it('an image that several teams want is pulled once, in the turn of the first of them', async () => {
  await want('slow', 'a', 'b', 'c', 'popular', 'd');
  await want('other', 'popular');
  await until(() => pulls.length >= 3);
  expect(pulled()).toEqual(['a', 'b', 'popular']);
  end('a');
  end('b');
  await until(() => pulls.length >= 5);
  expect(pulled(3)).toEqual(['c', 'd']);
});

it('an image is pulled in the turn of no team that wants it no more', async () => {
  await want('one', 'a', 'b', 'both', 'c');
  await want('other', 'x', 'y', 'both');
  await until(() => pulls.length >= 4);
  await stop('one', 'both');
  end('a');
  await until(() => pulls.length >= 5);
  expect(pulled(4)).toEqual(['c']);
  end('x');
  await until(() => pulls.length >= 6);
  expect(pulled(5)).toEqual(['both']);
});

it('a pull ends when the last that wants it does not any more, whichever team has begun it', async () => {
  await want('one', 'a');
  await want('other', 'a');
  await until(() => pulls.length >= 1);
  const [pull] = pulls;
  await stop('one', 'a');
  // It would be over by now.
  await want('one', 'b');
  await until(() => pulls.length >= 2);
  expect(pull?.response.closed).toBe(false);
  await stop('other', 'a');
  await until(() => pull?.response.closed === true);
});

it.each([
  ['dial tcp 127.0.0.1:443: connect: connection refused', 'cannot be reached'],
  ['dial tcp: lookup registry.example.com on 127.0.0.53:53: no such host', 'cannot be reached'],
  ['received unexpected HTTP status: 500 Internal Server Error', 'sent an unexpected response'],
])('a registry that is not there is told from one that answers something else: %s', async (said, told) => {
  await want('one', 'a');
  await until(() => pulls.length >= 1);
  const error = `initializing source docker://a: pinging container registry: ${said}`;
  pulls[0]?.response.end(`${JSON.stringify({ error })}\n`);
  const trouble = await eventually(async () => {
    const [sight] = await engine.driver.observePods([refOf('one-a')], soon());
    return sight?.phase === 'preparing' && sight.trouble ? sight.trouble : undefined;
  });
  expect(trouble).toEqual({ code: 'unreachable', message: `The image a could not be pulled: its registry ${told}.` });
});

it('an image whose pull has failed is pulled again ten seconds later, although the clock was set back meanwhile', async () => {
  const { promise: failed, resolve: onEnd } = Promise.withResolvers<unknown>();
  const images = new Images(
    new Engine({ socketPath: engine.socketPath }),
    new Names('i1'),
    { turnMs: 60_000, stallMs: 60_000, reviewMs: 60_000 },
    onEnd,
  );
  const wanting = { ref: refOf('one'), teamId: 'one' };
  await images.prepare('a', wanting, soon());
  await until(() => pulls.length >= 1);
  pulls[0]?.response.end('{"error":"The registry is full."}\n');
  await failed;
  expect(images.sightOf(wanting.ref)?.trouble).not.toBeNull();
  const [realNow, realElapsed] = [Date.now, performance.now.bind(performance)];
  const clock = jest.spyOn(Date, 'now').mockImplementation(() => realNow() - 3_600_000);
  const elapsed = jest.spyOn(performance, 'now').mockImplementation(() => realElapsed() + 10_000);
  try {
    await images.prepare('a', wanting, soon());
    // A pull that is under way.
    expect(images.sightOf(wanting.ref)).toMatchObject({ pull: expect.anything(), trouble: null });
  } finally {
    clock.mockRestore();
    elapsed.mockRestore();
    images.close();
  }
});

it('a run that another process has ended waits for no pull any more: its pull ends, and the next of its team begins', async () => {
  const isAbsent = async (id: string) => {
    const [sight] = await engine.driver.observePods([refOf(id)], soon());
    return sight?.phase === 'absent' ? true : undefined;
  };
  const endElsewhere = (id: string) => answers.set(id, () => Promise.resolve(false));
  await want('one', 'a', 'b', 'c', 'd');
  await until(() => pulls.length >= 2);
  endElsewhere('one-c');
  await eventually(() => isAbsent('one-c'));
  endElsewhere('one-a');
  await until(() => pulls.length >= 3);
  expect(pulled(2)).toEqual(['d']);
  await until(() => pulls.some(({ image, response }) => image === 'a' && response.closed));
  expect(pulls.filter(({ response }) => response.closed)).toHaveLength(1);
});

it('whether runs are wanted is asked one after the other, and a pull goes on where that cannot be told', async () => {
  let [open, mostOpen, asked] = [0, 0, 0];
  const fail = async (): Promise<boolean> => {
    mostOpen = Math.max(mostOpen, (open += 1));
    await setImmediate();
    [open, asked] = [open - 1, asked + 1];
    changes.emit('change');
    throw new Error('The database does not respond.');
  };
  for (const run of ['one-a', 'one-b', 'other-a']) answers.set(run, fail);
  await want('one', 'a', 'b');
  await want('other', 'a');
  await until(() => asked >= 9);
  expect([mostOpen, pulled()]).toEqual([1, ['a', 'b']]);
  expect(pulls.map(({ response }) => response.closed)).toEqual([false, false]);
});

it.each([
  ['labels', { Labels: { story: 'x'.repeat(32 * 1024) }, Env: [] }],
  ['characters that Go writes as six bytes', { Labels: { story: '\u2028'.repeat(5_500) } }],
  ['characters that Go writes as six bytes in HTML', { Cmd: ['<'.repeat(5_500)] }],
  ['volumes', { Volumes: Object.fromEntries(Array.from({ length: 90 }, (_, at) => [`/${at}`, {}])) }],
])('an image that makes the lists of all containers long by its %s runs no pod', async (_what, config) => {
  configs.set('wordy', config);
  await expect(want('one', 'wordy')).rejects.toMatchObject({
    code: 'image_too_large',
    isPermanent: true,
    message:
      'The image wordy has too many settings (labels, variables, command, volumes): they take more than 32 KiB in an answer of the engine.',
  });
});

it('an image with the usual settings is not too large', async () => {
  const text = 'PATH=/usr/local/cuda/bin:/usr/bin "quoted" 使用许可 '.repeat(4);
  const [Env, Labels] = [Array.from({ length: 40 }, () => text), { notice: text.repeat(20) }];
  configs.set('usual', { Env, Labels, Volumes: { '/data': {} }, ExposedPorts: { '8888/tcp': {} } });
  // The engine of this spec has no network for the pod.
  await expect(want('one', 'usual')).rejects.toMatchObject({ code: 'not_found' });
});
