import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describeWhere, podmanLacks } from '@atoll/testing';
import { eventually, Installation } from '../contract/cluster-under-test-fixture.js';
import type { PodRun } from '../objects.js';
import { aliasOf, Names } from './names.js';
import { startPodmanCluster, type PodmanCluster } from './podman-cluster-fixture.js';

const run = promisify(execFile);

describeWhere(podmanLacks(), 'the network of a workspace on Podman', () => {
  let cluster: PodmanCluster;
  let here: Installation;
  beforeAll(async () => {
    cluster = await startPodmanCluster({ hasOwnNetwork: true });
    here = new Installation(cluster);
  });
  afterAll(() => cluster?.stop());

  const podman = (...words: string[]) => cluster.podman.cli(...words);
  const ip = (...words: string[]) => run('nsenter', [`--net=/proc/${cluster.podman.pid}/ns/net`, 'ip', ...words]);
  /** The network's resolver answers at its gateway. */
  const findsItself = ({ ref }: PodRun): Promise<true> =>
    eventually(() =>
      podman('exec', new Names(here.id).of(ref), 'timeout', '10', 'getent', 'hosts', aliasOf(ref.id)).then(
        () => true as const,
        () => undefined,
      ),
    );

  it('works when an interface that a crash has left keeps the bridge of the one before', async () => {
    const first = await here.startRunning(here.programs.idle);
    await findsItself(first);
    const network = new Names(here.id).network(first.owner.workspaceId);
    const bridge = (await podman('network', 'inspect', '--format', '{{.NetworkInterface}}', network)).trim();
    await ip('link', 'add', 'left0', 'type', 'veth', 'peer', 'name', 'left1');
    await ip('link', 'set', 'left0', 'master', bridge, 'up');
    await here.remove(first);
    expect(await podman('network', 'ls', '--format', '{{.Name}}')).not.toContain(network);
    const next = await here.startRunning(here.programs.idle, { owner: first.owner });
    await findsItself(next);
    await here.leave();
  });
});
