import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { PodRun, RunRef } from '../objects.js';
import { FakeEngine } from './fake-engine-fixture.js';

const soon = () => AbortSignal.timeout(60_000);

let engine: FakeEngine;
/** The pulls that the engine was asked for, each image, and what ends its pull. */
let pulls: { image: string; response: ServerResponse }[];
let changes: EventEmitter;
beforeEach(async () => {
  [pulls, changes] = [[], new EventEmitter()];
  engine = await FakeEngine.start(({ url }, response) => {
    const image = new URL(url, 'http://engine').searchParams.get('fromImage');
    if (image === null) return void response.writeHead(404).end('{"message":"No such object"}');
    pulls.push({ image, response: response.on('close', () => changes.emit('change')) });
    // The registry answers nothing until the spec says so.
    response.writeHead(200).flushHeaders();
    changes.emit('change');
  });
});
afterEach(() => engine.stop());

const refOf = (id: string): RunRef => ({ kind: 'pod', id, run: 1 });
const podOf = (teamId: string, image: string): PodRun => ({
  ref: refOf(`${teamId}-${image}`),
  owner: { teamId, workspaceId: teamId },
  podName: image,
  image,
  command: [],
  env: new Map(),
  cpu: null,
  memoryGb: null,
  slices: [],
  volumes: [],
  authorizedKeys: [],
});
const want = async (teamId: string, ...images: string[]): Promise<void> => {
  for (const image of images) await engine.driver.startPod(podOf(teamId, image), () => Promise.resolve(true), soon());
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
