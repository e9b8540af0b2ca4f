import { expect, it } from '@jest/globals';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { freePort } from '@atoll/testing';
import type { Capabilities } from '../cluster-driver.js';
import { createCertificate } from './certificates-fixture.js';
import { codeOf, eventually, soon, type Installation, type Lack } from './cluster-under-test-fixture.js';

export function doorLaws(here: () => Installation, capabilities: Capabilities, lacks: readonly Lack[]): void {
  const host = () => here().cluster.publicHost;

  it('opens a port to a pod, and makes the door once however often it is requested', async () => {
    const pod = await here().startRunning(here().programs.serves);
    const door = here().door(pod, await freePort());
    await eventually(() => Promise.all(Array.from({ length: 4 }, () => here().driver.openDoor(door, soon()))));
    await here().open(door);
    expect((await here().listed()).filter(({ id }) => id === door.ref.id)).toEqual([door.ref]);
    expect(await eventually(() => greeting(host(), door.externalPort))).toBe(pod.podName);
    expect(await echo(host(), door.externalPort, 'hello')).toBe('hello');
    await here().remove(door, pod);
  });

  it('is open as soon as it is said to be: the next connection is accepted', async () => {
    const pod = await here().startRunning(here().programs.serves);
    for (let times = 0; times < 4; times += 1) {
      const door = here().door(pod, await freePort());
      await eventually(() =>
        here()
          .driver.openDoor(door, soon())
          .then(() => true),
      );
      await eventually(async () => ((await here().observeDoor(door)).phase === 'open' ? true : undefined));
      expect(await accepts(host(), door.externalPort)).toBe(true);
      await here().remove(door);
    }
    await here().remove(pod);
  });

  it('is closed once it is gone', async () => {
    const pod = await here().startRunning(here().programs.serves);
    const door = await here().open(here().door(pod, await freePort()));
    await here().remove(door);
    expect(await here().observeDoor(door)).toEqual({ phase: 'absent' });
    await untilClosed(host(), door.externalPort);
    await here().remove(pod);
  });

  it('stays where the signal of its removal was aborted before', async () => {
    const pod = await here().startRunning(here().programs.serves);
    const door = await here().open(here().door(pod, await freePort()));
    expect(await codeOf(here().driver.remove(door.ref, AbortSignal.abort()))).toBe('timeout');
    expect((await here().observeDoor(door)).phase).toBe('open');
    await here().remove(door, pod);
  });

  it('leads to the next run of the pod, and works while no driver is there', async () => {
    const first = await here().startRunning(here().programs.serves);
    const door = await here().open(here().door(first, await freePort()));
    await here().remove(first);
    const next = await here().startRunning(here().programs.serves, {
      ...first,
      ref: { ...first.ref, run: first.ref.run + 1 },
      podName: 'next-run',
    });
    await here().driver.close();
    expect(await eventually(() => greeting(host(), door.externalPort))).toBe('next-run');
    await here().restart();
    expect((await here().observeDoor(door)).phase).toBe('open');
    await here().remove(door, next);
  });

  it('moves to another port without a gap: two runs of it are open at once', async () => {
    const pod = await here().startRunning(here().programs.serves);
    const old = await here().open(here().door(pod, await freePort()));
    const next = await here().open({
      ...old,
      ref: { ...old.ref, run: old.ref.run + 1 },
      externalPort: await freePort(),
    });
    await eventually(() => greeting(host(), old.externalPort));
    await eventually(() => greeting(host(), next.externalPort));
    await here().remove(old);
    expect((await here().observeDoor(next)).phase).toBe('open');
    expect(await greeting(host(), next.externalPort)).toBe(pod.podName);
    await here().remove(next, pod);
  });

  it('says that another program holds the port, and opens when it is free', async () => {
    const pod = await here().startRunning(here().programs.serves);
    const squatter = createServer().listen(0, host());
    await once(squatter, 'listening');
    const door = here().door(pod, (squatter.address() as { port: number }).port);
    // Said at once, or by what is observed.
    const refusal = await eventually(async () => {
      const code = await codeOf(here().driver.openDoor(door, soon())).catch(() => undefined);
      const sight = await here().observeDoor(door);
      return code ?? (sight.phase === 'opening' ? sight.trouble?.code : undefined);
    });
    expect(refusal).toBe('port_in_use');
    expect((await here().observeDoor(door)).phase).toBe('opening');
    squatter.close();
    await once(squatter, 'close');
    await here().open(door);
    await here().remove(door, pod);
  });

  if (!lacks.includes('doors by hand')) {
    it('opens again after it was stopped or removed by hand', async () => {
      const pod = await here().startRunning(here().programs.serves);
      const [stopped, removed] = [
        await here().open(here().door(pod, await freePort())),
        await here().open(here().door(pod, await freePort())),
      ];
      await here().cluster.stopByHand(here().id, stopped.ref);
      await here().cluster.removeByHand(here().id, removed.ref);
      expect([(await here().observeDoor(stopped)).phase, (await here().observeDoor(removed)).phase]).toEqual([
        'opening',
        'absent',
      ]);
      for (const door of [stopped, removed]) {
        await here().open(door);
        expect(await eventually(() => greeting(host(), door.externalPort))).toBe(pod.podName);
      }
      await here().remove(stopped, removed, pod);
    });
  }

  if (capabilities.udp) {
    it('passes UDP in both directions', async () => {
      const pod = await here().startRunning(here().programs.serves);
      const door = await here().open(here().door(pod, await freePort(), { transport: 'udp' }));
      expect(await eventually(() => packet(host(), door.externalPort))).toContain(pod.podName);
      await here().remove(door, pod);
    });
  }

  if (capabilities.transportsSharePorts) {
    it('gives one number to TCP and to UDP', async () => {
      const pod = await here().startRunning(here().programs.serves);
      const tcp = await here().open(here().door(pod, await freePort()));
      const udp = await here().open(here().door(pod, tcp.externalPort, { transport: 'udp' }));
      expect((await here().observeDoor(tcp)).phase).toBe('open');
      await here().remove(tcp, udp, pod);
    });
  }

  if (capabilities.tls) {
    it('ends TLS, and takes another certificate while connections continue', async () => {
      const pod = await here().startRunning(here().programs.serves);
      const [first, second] = await Promise.all([createCertificate('first.test'), createCertificate('second.test')]);
      const door = await here().open(here().door(pod, await freePort(), { tls: first }));
      await eventually(async () => ((await commonName(host(), door.externalPort)) === 'first.test' ? true : undefined));
      const open = connectTls({ host: host(), port: door.externalPort, rejectUnauthorized: false });
      expect(await firstLine(open)).toBe(pod.podName);
      await here().driver.openDoor({ ...door, tls: second }, soon());
      await eventually(async () =>
        (await commonName(host(), door.externalPort)) === 'second.test' ? true : undefined,
      );
      open.write('still here');
      expect(String((await once(open, 'data'))[0])).toBe('still here');
      open.destroy();
      await here().remove(door, pod);
    });

    it('refuses a key that is not the certificate’s, without a word of it', async () => {
      const pod = here().pod(here().programs.idle);
      const [first, second] = await Promise.all([createCertificate('first.test'), createCertificate('second.test')]);
      const door = here().door(pod, await freePort(), { tls: { certificate: first.certificate, key: second.key } });
      const error = await here()
        .driver.openDoor(door, soon())
        .catch((reason: unknown) => reason);
      expect(error).toMatchObject({ code: 'invalid' });
      expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain(second.key.slice(40, 80));
      expect(await here().observeDoor(door)).toEqual({ phase: 'absent' });
    });
  }
}

/** What a pod says first; undefined where it says nothing. */
export async function greeting(host: string, port: number): Promise<string | undefined> {
  const socket = connect({ host, port });
  try {
    return await firstLine(socket);
  } catch {
    return undefined;
  } finally {
    socket.destroy();
  }
}

async function firstLine(socket: Socket | TLSSocket): Promise<string | undefined> {
  let text = '';
  while (!text.includes('\n')) {
    const [data] = (await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => [])])) as [Buffer?];
    if (!data) return undefined;
    text += data.toString();
  }
  return text.split('\n')[0];
}

async function echo(host: string, port: number, text: string): Promise<string> {
  const socket = connect({ host, port });
  socket.end(text);
  let all = '';
  for await (const data of socket) all += String(data);
  return all.split('\n').slice(1).join('\n');
}

export async function accepts(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port });
  return once(socket, 'connect').then(
    () => (socket.destroy(), true),
    () => false,
  );
}

/** Whatever listened was there a moment longer than the door where the process that has both was held up. */
export async function untilClosed(host: string, port: number): Promise<void> {
  await eventually(async () => ((await accepts(host, port)) ? undefined : true));
}

async function packet(host: string, port: number): Promise<string | undefined> {
  const socket = createSocket('udp4');
  try {
    socket.send('hello', port, host);
    const signal = AbortSignal.timeout(1_000);
    const [data] = (await once(socket, 'message', { signal })) as [Buffer];
    return data.toString();
  } catch {
    return undefined;
  } finally {
    socket.close();
  }
}

async function commonName(host: string, port: number): Promise<string | undefined> {
  const socket = connectTls({ host, port, rejectUnauthorized: false });
  try {
    await once(socket, 'secureConnect');
    return String(socket.getPeerCertificate().subject.CN);
  } catch {
    return undefined;
  } finally {
    socket.destroy();
  }
}
