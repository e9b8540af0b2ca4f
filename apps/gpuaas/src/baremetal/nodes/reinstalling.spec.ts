import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  baremetalNodes,
  type BaremetalNode,
  type BaremetalNodeSetAside,
  type ReinstallCallback,
} from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { systemContext } from '@atoll/rpc';
import { generateKeyPair } from '@atoll/ssh';
import { errorOf, type ToldTeam } from '../../gpuaas-fixture.js';
import { BaremetalFixture } from '../baremetal-fixture.js';

interface Call {
  body: string;
  signature: string;
}

const secret = 'a secret of sixteen';
let fixture: BaremetalFixture;
let team: ToldTeam;
let hook: Server;
let url: string;
let calls: Call[];
let statuses: number[];
beforeAll(async () => {
  fixture = await BaremetalFixture.start({ reinstallSecret: secret, publicUrl: 'https://atoll.example/' });
  team = await fixture.team();
  hook = createServer((request: IncomingMessage, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      calls.push({ body, signature: String(request.headers['atoll-signature']) });
      response.writeHead(statuses.shift() ?? 202, { location: 'http://169.254.169.254/' }).end();
    });
  });
  hook.listen(0, '127.0.0.1');
  await once(hook, 'listening');
  url = `http://127.0.0.1:${(hook.address() as AddressInfo).port}/reinstall`;
});
beforeEach(() => {
  [calls, statuses] = [[], []];
});
afterAll(async () => {
  hook.close();
  await fixture.stop();
});

const credential = { private_key: generateKeyPair().privateKey };

/** A host on which a tenant had root, released. */
async function used(
  input: object = { reinstall: { url } },
  faults = '',
  disturb: (node: BaremetalNode) => Promise<unknown> = () => Promise.resolve(),
) {
  const model = `model-${newId().slice(-8)}`;
  const specs = { gpu_model: model, gpu_count: 4, cpu_cores: 64, memory_gb: 512 };
  const node = await fixture.available(faults, { specs, tenant_sudo: true, credential, ...input });
  const instance = await fixture.settled(team, { specs: { gpu_model: model } });
  await disturb(node);
  await fixture.end(team, instance);
  await fixture.settle();
  return { node, instance, model };
}

const check = ({ node_id }: BaremetalNode) => fixture.gpuaas.call(baremetalNodes.check, { node_id });
const change = ({ node_id }: BaremetalNode, values: object) =>
  fixture.gpuaas.call(baremetalNodes.update, { node_id, ...values });
const rename = ({ node_id }: BaremetalNode, faults: string) =>
  fixture.gpuaas.query('UPDATE baremetal_node SET name = $2 WHERE node_id = $1', [node_id, `${newId()}.${faults}`]);

/** What is looked at meanwhile shows another host key. */
async function showAnotherKey(node: BaremetalNode): Promise<void> {
  await rename(node, 'reach-rekeyed');
  await fixture.pass(61);
  await fixture.work();
  expect((await fixture.node(node.node_id)).reason).toContain('another host key');
  await rename(node, '');
}

const callback = (answer: ReinstallCallback) =>
  fixture.gpuaas.ask(baremetalNodes.reinstalled, answer, systemContext('gateway', { deadlineMs: 60_000 }));
const tokenOf = ({ body }: Call | undefined = { body: '{}', signature: '' }) =>
  (JSON.parse(body) as { token: string }).token;

describe('a host on which a tenant had root', () => {
  it('is free again only after its reinstall; the tenant does not wait for that', async () => {
    const { node, instance } = await used();
    expect(await fixture.instance(team, instance)).toMatchObject({ status: 'Released' });
    expect(await fixture.node(node.node_id)).toMatchObject({
      status: 'Releasing',
      reason: 'The reinstall hook is at work.',
    });
    expect(calls).toHaveLength(1);
    const [{ body, signature } = { body: '', signature: '' }] = calls;
    expect(JSON.parse(body)).toEqual({
      token: expect.stringMatching(new RegExp(`^${node.node_id}\\.[\\w-]{43}$`)),
      node_id: node.node_id,
      name: node.name,
      host: node.host,
      callback_url: 'https://atoll.example/api/baremetal/reinstall-callback',
    });
    const [, at = ''] = /^t=(\d+),v1=/.exec(signature) ?? [];
    expect(signature).toBe(`t=${at},v1=${createHmac('sha256', secret).update(`${at}.${body}`).digest('hex')}`);
    const host_key = `SHA256:${'k'.repeat(43)}`;
    const token = tokenOf(calls[0]);
    expect((await errorOf(callback({ token: `${token}x`, status: 'done' }))).code).toBe('not_found');
    expect((await errorOf(callback({ token: '1', status: 'done' }))).code).toBe('not_found');
    await callback({ token, status: 'done', host_key });
    expect((await errorOf(callback({ token, status: 'done' }))).code).toBe('not_found');
    await fixture.settle();
    // The simulated host is still as the tenant left it: undone, so the check passes.
    expect(await fixture.node(node.node_id)).toMatchObject({ status: 'Available', host_key, instance_id: null });
  });

  it('has its hook called again while it fails, with the same token', async () => {
    statuses = [503, 500, 202];
    const { node } = await used();
    for (let count = 0; count < 4; count += 1) {
      await fixture.pass(10);
      await fixture.work();
    }
    expect(calls).toHaveLength(3);
    expect(new Set(calls.map(tokenOf)).size).toBe(1);
    expect(
      (await fixture.node(node.node_id)).attempts.map(({ step, outcome, reason }) => [step, outcome, reason]),
    ).toEqual([
      ['inspect', 'succeeded', null],
      ['call_hook', 'failed', 'The reinstall hook answered 503.'],
      ['call_hook', 'failed', 'The reinstall hook answered 500.'],
      ['call_hook', 'succeeded', null],
    ]);
  });

  it.each([
    ['refuses', [404], 'The reinstall hook answered 404.'],
    ['leads elsewhere', [302, 302, 302, 302, 302, 302], 'The reinstall hook answered 302.'],
  ])('waits in maintenance where its hook %s', async (_, answers, reason) => {
    statuses = [...answers];
    const { node } = await used();
    for (let count = 0; count < 8; count += 1) {
      await fixture.pass(60);
      await fixture.work();
    }
    expect(await fixture.node(node.node_id)).toMatchObject({ status: 'Clean failed', maintenance: true, reason });
  });

  it('waits in maintenance where the reinstall failed, or did not end in time', async () => {
    const { node } = await used();
    await callback({ token: tokenOf(calls[0]), status: 'failed', reason: 'No disk.' });
    expect(await fixture.node(node.node_id)).toMatchObject({
      status: 'Clean failed',
      maintenance: true,
      reason: 'The host could not be reinstalled: No disk.',
    });
    const { node: late } = await used();
    await fixture.gpuaas.query('UPDATE baremetal_node SET deadline_at = clock_timestamp() WHERE node_id = $1', [
      late.node_id,
    ]);
    await fixture.work();
    expect(await fixture.node(late.node_id)).toMatchObject({ status: 'Clean failed', maintenance: true });
  });

  it('waits in maintenance where it has no hook, until the operator has checked it', async () => {
    const { node } = await used({});
    expect(await fixture.node(node.node_id)).toMatchObject({ status: 'Clean failed', maintenance: true });
    expect((await fixture.node(node.node_id)).reason).toContain('The last tenant had root');
    await fixture.gpuaas.call(baremetalNodes.update, { node_id: node.node_id, maintenance: false, host_key: null });
    expect((await fixture.gpuaas.call(baremetalNodes.check, { node_id: node.node_id })).status).toBe('Checking');
    await fixture.settle();
    expect(await fixture.node(node.node_id)).toMatchObject({ status: 'Available', maintenance: false });
  });

  it.each([
    ['its operator had drained it', (node: BaremetalNode) => change(node, { maintenance: true })],
    ['its tenant had changed the host key', showAnotherKey],
    [
      'that was so, and its operator had accepted the new key',
      async (node: BaremetalNode) => {
        await showAnotherKey(node);
        return change(node, { maintenance: false, host_key: null });
      },
    ],
  ])('waits for its reinstall although %s', async (_, disturb) => {
    const { node } = await used({}, '', disturb);
    const reason = expect.stringMatching(/^The last tenant had root\. Reinstall the host/);
    const waits = { status: 'Clean failed', reason };
    expect(await fixture.node(node.node_id)).toMatchObject({ ...waits, maintenance: true });
    const isMeant = ({ node_id }: BaremetalNodeSetAside) => node_id === node.node_id;
    const told = await fixture.heard<BaremetalNodeSetAside>('gpuaas.baremetal_node_set_aside', (all) =>
      all.some((one) => isMeant(one) && one.code === 'reinstall'),
    );
    expect(told.filter(isMeant).at(-1)?.code).toBe('reinstall');
    // Its end of maintenance takes neither the reason away nor the need.
    await change(node, { maintenance: false });
    expect((await errorOf(check(node))).code).toBe('conflict');
    expect(await fixture.node(node.node_id)).toMatchObject({ ...waits, maintenance: false });
    await change(node, { host_key: null });
    await check(node);
    await fixture.settle();
    expect(await fixture.node(node.node_id)).toMatchObject({ status: 'Available', instance_id: null, reason: null });
  });

  it('waits for its reinstall although its pinned host key is sent again; another key confirms the reinstall', async () => {
    const { node } = await used({});
    const { host_key } = await fixture.node(node.node_id);
    expect(host_key).toMatch(/^SHA256:/);
    await change(node, { host_key, maintenance: false });
    expect((await errorOf(check(node))).code).toBe('conflict');
    expect(await fixture.node(node.node_id)).toMatchObject({
      status: 'Clean failed',
      reason: expect.stringMatching(/^The last tenant had root/),
    });
    await change(node, { host_key: `SHA256:${'n'.repeat(43)}` });
    await check(node);
    await fixture.settle();
    expect(await fixture.node(node.node_id)).toMatchObject({ status: 'Available', instance_id: null });
  });

  it('is not offered again either where the tenant was undone before he was active; it is where the host was only reached', async () => {
    const { node } = await used({}, 'verify-fail');
    expect((await fixture.node(node.node_id)).status).toBe('Clean failed');
    const { node: reached } = await used({}, 'reach-login');
    expect((await fixture.node(reached.node_id)).status).toBe('Available');
  });
});

it('a hook needs the secret that signs its calls', async () => {
  const bare = await BaremetalFixture.start();
  const { code, details } = await errorOf(bare.register({ reinstall: { url } }));
  expect([code, details.errors?.[0]?.path]).toEqual(['invalid_input', 'reinstall']);
  await bare.stop();
});
