import { expect, it } from '@jest/globals';
import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { codeOf, eventually, soon, type Installation } from './cluster-under-test-fixture.js';

/** Connections to port 8080 of `programs.serves`. */
export function connectionLaws(here: () => Installation): void {
  const connect = (pod: { ref: Parameters<Installation['driver']['connect']>[0] }, port = 8080) =>
    here().driver.connect(pod.ref, port, soon());

  it('connects to the loopback of a pod, with the end of input in its direction alone', async () => {
    const pod = await here().startRunning(here().programs.serves);
    const connection = await eventually(() => connect(pod));
    connection.end('hello');
    expect(String(await buffer(connection))).toBe(`${pod.podName}\nhello`);
    await here().remove(pod);
  });

  it('refuses before any byte where nothing listens', async () => {
    const pod = await here().startRunning(here().programs.idle);
    expect(await codeOf(connect(pod, 8081))).toBe('refused');
    await here().remove(pod);
    expect(await codeOf(connect(pod))).toBe('not_found');
  });

  it('carries many connections at once, each its own bytes', async () => {
    const pod = await here().startRunning(here().programs.serves);
    await eventually(() => connect(pod)).then((first) => first.destroy());
    const answers = Array.from({ length: 30 }, async (_, index) => {
      const bytes = Buffer.alloc(200_000, index + 1);
      const connection = await connect(pod);
      connection.end(bytes);
      return Buffer.concat([Buffer.from(`${pod.podName}\n`), bytes]).equals(await buffer(connection));
    });
    expect(await Promise.all(answers)).toEqual(answers.map(() => true));
    await here().remove(pod);
  });

  it('connects to the next run of the pod, and to one that was restarted in between', async () => {
    const pod = await here().startRunning(here().programs.serves);
    await eventually(() => connect(pod)).then((first) => first.destroy());
    const next = await here().startRunning(here().programs.serves, {
      ...pod,
      ref: { ...pod.ref, run: pod.ref.run + 1 },
      podName: 'next-run',
    });
    await here().remove(pod);
    const connection = await eventually(() => connect(next));
    connection.end();
    expect(String(await buffer(connection))).toBe('next-run\n');
    await here().remove(next);
  });

  it('connects again after what answers was killed', async () => {
    const pod = await here().startRunning(here().programs.serves);
    const cut = await eventually(() => connect(pod));
    const closed = once(cut, 'close');
    cut.on('error', () => undefined).resume();
    await here().cluster.crash();
    await closed;
    const connection = await eventually(() => connect(pod));
    connection.end('again');
    expect(String(await buffer(connection))).toBe(`${pod.podName}\nagain`);
    await here().remove(pod);
  });

  it('takes no more bytes than the pod does', async () => {
    const pod = await here().startRunning(here().programs.serves);
    // It sends back what it receives, and nobody reads that.
    const connection = await eventually(() => connect(pod));
    let written = 0;
    const block = Buffer.alloc(65_536);
    const write = (): void => {
      while (!connection.destroyed && connection.write(block)) written += block.length;
      connection.once('drain', write);
    };
    write();
    let before = -1;
    while (before !== written) {
      before = written;
      await delay(500);
    }
    expect(written).toBeLessThan(50_000_000);
    connection.destroy();
    await here().remove(pod);
  });

  it('leaves nothing of its own behind with the pod', async () => {
    const pod = await here().startRunning(here().programs.serves);
    const connection = await eventually(() => connect(pod));
    const closed = once(connection, 'close');
    connection.on('error', () => undefined).resume();
    await here().remove(pod);
    await closed;
    expect(await here().listed()).not.toContainEqual(expect.objectContaining({ id: pod.ref.id }));
  });
}
