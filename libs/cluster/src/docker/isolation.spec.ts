import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describeWhere, podmanImage, podmanLacks } from '@atoll/testing';
import { eventually, Installation, soon } from '../contract/cluster-under-test-fixture.js';
import type { PodRun } from '../objects.js';
import { Names } from './names.js';
import { startPodmanCluster, type PodmanCluster } from './podman-cluster-fixture.js';

const run = promisify(execFile);

describeWhere(podmanLacks(), 'the isolation of networks on Podman', () => {
  let cluster: PodmanCluster;
  let here: Installation;
  beforeAll(async () => void (cluster = await startPodmanCluster({ hasOwnNetwork: true })));
  afterAll(() => cluster?.stop());
  beforeEach(() => void (here = new Installation(cluster)));

  const podman = (...words: string[]) => cluster.podman.cli(...words);
  const nameOf = ({ ref }: PodRun) => new Names(here.id).of(ref);
  const networkOf = ({ owner }: PodRun) => new Names(here.id).network(owner.workspaceId);
  const keeperOf = ({ owner }: PodRun) => new Names(here.id).keeper(owner.workspaceId);
  const listed = (...words: string[]) => podman(...words).then((text) => text.split('\n'));
  const addressOf = async (pod: PodRun) =>
    (
      await podman('inspect', '--format', '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}', nameOf(pod))
    ).trim();
  /** By an exec: a container that starts restores what is looked at here. */
  const reaches = async (from: PodRun, address: string): Promise<boolean> =>
    podman('exec', nameOf(from), 'socat', '/dev/null', `TCP:${address}:8080,connect-timeout=2`).then(
      () => true,
      () => false,
    );
  /** What listens there may begin after its pod has. */
  const untilReached = (from: PodRun, address: string) =>
    eventually(async () => (await reaches(from, address)) || undefined);
  /** Looks at the networks in each `list`. */
  const vigilant = () => new Installation({ ...cluster, open: (id) => cluster.open(id, { isolationProbeMs: 0 }) });
  /** An isolated network of another program of the host, whose only container ends. */
  const endForeignNetwork = async () => {
    await podman('network', 'create', '--opt', 'isolate=true', 'foreign');
    await podman('run', '--rm', '--network', 'foreign', podmanImage, 'true');
    await podman('network', 'rm', 'foreign');
  };
  const firewall = (...words: string[]) =>
    run('nsenter', [`--net=/proc/${cluster.podman.pid}/ns/net`, 'iptables', ...words]);
  const checked = async () => (await here.driver.check(soon())).find(({ name }) => name === 'isolation');

  it('outlives the last pod of another workspace, by its own end and by its removal', async () => {
    const [ours, theirs] = [await here.startRunning(here.programs.serves), await here.startRunning(here.programs.idle)];
    const address = await addressOf(ours);
    await untilReached(ours, address);
    expect(await reaches(theirs, address)).toBe(false);
    const [ends, goes] = [here.pod(here.programs.exits(0)), await here.startRunning(here.programs.idle)];
    await here.start(ends, 'ended');
    expect(await reaches(theirs, address)).toBe(false);
    await here.remove(ends, goes);
    expect(await reaches(theirs, address)).toBe(false);
    // Their networks stay until no other pod runs.
    expect(await listed('network', 'ls', '--format', '{{.Name}}')).toContain(networkOf(goes));
    await here.remove(ours, theirs);
    await here.listed();
    expect((await podman('network', 'ls', '--format', '{{.Name}}')).includes(here.id)).toBe(false);
    expect(await podman('ps', '--all', '--quiet')).toBe('');
    await here.leave();
  });

  it('is restored where another program of the host has taken it away, and the check says when that was', async () => {
    here = vigilant();
    const [ours, theirs] = [await here.startRunning(here.programs.serves), await here.startRunning(here.programs.idle)];
    const address = await addressOf(ours);
    await here.listed();
    expect(await checked()).toMatchObject({ ok: true });
    await endForeignNetwork();
    await untilReached(theirs, address);
    await here.listed();
    expect(await reaches(theirs, address)).toBe(false);
    expect(await checked()).toMatchObject({
      ok: false,
      isVital: false,
      howToFix: expect.stringContaining('iptables -I FORWARD'),
    });
    await here.leave();
  });

  it('goes on with another process, and where keepers were killed', async () => {
    const [ours, theirs] = [await here.startRunning(here.programs.serves), await here.startRunning(here.programs.idle)];
    const address = await addressOf(ours);
    await podman('kill', keeperOf(ours), keeperOf(theirs));
    await podman('rm', '--force', keeperOf(theirs));
    await here.restart();
    await here.listed();
    expect(await listed('ps', '--format', '{{.Names}}')).toEqual(
      expect.arrayContaining([keeperOf(ours), keeperOf(theirs)]),
    );
    const next = await here.startRunning(here.programs.idle);
    await here.restart();
    await here.remove(next);
    expect(await reaches(theirs, address)).toBe(false);
    await here.leave();
  });

  it('is there again after a restart of the host', async () => {
    const pods = [await here.startRunning(here.programs.serves), await here.startRunning(here.programs.idle)] as const;
    await podman('kill', '--all');
    await firewall('-F');
    const [ours, theirs] = [
      here.pod(here.programs.serves, { owner: pods[0].owner }),
      here.pod(here.programs.idle, { owner: pods[1].owner }),
    ];
    await here.restart();
    for (const pod of [ours, theirs]) await here.start(pod);
    expect(await listed('ps', '--format', '{{.Names}}')).toEqual(
      expect.arrayContaining([keeperOf(ours), keeperOf(theirs)]),
    );
    expect(await reaches(theirs, await addressOf(ours))).toBe(false);
    await here.leave();
  });

  it('covers names of pods too with the rule that the documents give, and pods still resolve those of their own', async () => {
    const rule = 'INPUT -i atl+ -m addrtype ! --dst-type LOCAL --limit-iface-in -j DROP'.split(' ');
    const [ours, theirs] = [await here.startRunning(here.programs.idle), await here.startRunning(here.programs.idle)];
    const gateway = '{{range .NetworkSettings.Networks}}{{.Gateway}}{{end}}';
    const gatewayOf = async (pod: PodRun) => (await podman('inspect', '--format', gateway, nameOf(pod))).trim();
    /** The address, asked for at this resolver; null where there is no answer. */
    const resolved = async (from: PodRun, { podName }: PodRun, resolver: string): Promise<string | null> =>
      podman('exec', nameOf(from), 'timeout', '5', 'busybox', 'nslookup', podName, resolver).then(
        (text) => /Name:.*\s+Address[ 0-9]*: *(\S+)/.exec(text)?.[1] ?? null,
        () => null,
      );
    const [ourGateway, theirGateway] = [await gatewayOf(ours), await gatewayOf(theirs)];
    const [ourAddress, theirAddress] = [await addressOf(ours), await addressOf(theirs)];
    const untilResolved = (pod: PodRun, resolver: string) =>
      eventually(async () => (await resolved(ours, pod, resolver)) ?? undefined);
    expect(await untilResolved(ours, ourGateway)).toBe(ourAddress);
    expect(await untilResolved(theirs, theirGateway)).toBe(theirAddress);
    await firewall('-I', ...rule);
    expect(await resolved(ours, theirs, theirGateway)).toBeNull();
    expect(await untilResolved(ours, ourGateway)).toBe(ourAddress);
    await firewall('-D', ...rule);
    await here.leave();
  });

  describe('that is lost and cannot be restored', () => {
    const accept = ['FORWARD', '-j', 'ACCEPT'];
    const lost = { ok: false, isVital: true, detail: expect.stringContaining('reach each other') };
    const restored = { ok: false, isVital: false, detail: expect.stringContaining('restored') };
    const lose = async () => {
      here = vigilant();
      const [ours, theirs] = [
        await here.startRunning(here.programs.serves),
        await here.startRunning(here.programs.idle),
      ];
      await firewall('-I', ...accept);
      await untilReached(theirs, await addressOf(ours));
      await here.listed();
      return { ours, theirs };
    };
    /** As the service asks that is not the one which has seen it, and knows no installation. */
    const checkedElsewhere = async () => {
      const driver = cluster.open('check');
      const checks = await driver.check(soon());
      await driver.close();
      return checks.find(({ name }) => name === 'isolation');
    };
    /** What is under way when the time of one check is over is there for the next. */
    const untilRestored = async () => {
      await eventually(async () => ((await checkedElsewhere())?.isVital ? undefined : true));
      expect(await checkedElsewhere()).toMatchObject(restored);
    };

    it('is said to be lost, and no pod may start, until it is there again', async () => {
      await lose();
      expect([await checked(), await checkedElsewhere()]).toMatchObject([lost, lost]);
      await firewall('-D', ...accept);
      await here.listed();
      await untilRestored();
      await here.leave();
    });

    it('is found to be there again by the check alone, since nobody lists what an engine has that is of no use', async () => {
      await lose();
      expect(await checkedElsewhere()).toMatchObject(lost);
      await firewall('-D', ...accept);
      await untilRestored();
      expect(
        (await listed('ps', '--all', '--format', '{{.Names}}')).filter((name) => /open-breach|probe/.test(name)),
      ).toEqual([]);
      await here.leave();
    });

    it('is found between any two networks in as many looks as there are networks, and the check looks again between these two', async () => {
      here = vigilant();
      const pods: PodRun[] = [];
      for (let count = 0; count < 4; count += 1) pods.push(await here.startRunning(here.programs.idle));
      // No neighbours, by name and in a circle.
      const [, one, , other] = pods.map(networkOf).toSorted();
      const bridgeOf = async (network = '') =>
        (await podman('network', 'inspect', '--format', '{{.NetworkInterface}}', network)).trim();
      const [a, b] = [await bridgeOf(one), await bridgeOf(other)];
      const accepts = [
        ['-i', a, '-o', b, '-j', 'ACCEPT'],
        ['-i', b, '-o', a, '-j', 'ACCEPT'],
      ];
      for (const rule of accepts) await firewall('-I', 'FORWARD', ...rule);
      for (let look = 0; look < pods.length; look += 1) await here.listed();
      for (let again = 0; again < 3; again += 1) expect(await checkedElsewhere()).toMatchObject(lost);
      for (const rule of accepts) await firewall('-D', 'FORWARD', ...rule);
      await untilRestored();
      await here.leave();
    });

    it('is restored by the check where it was the rule that was missing', async () => {
      const { ours, theirs } = await lose();
      // A keeper whose restart is still under way puts the rule back.
      await eventually(async () => {
        await firewall('-F', 'FORWARD');
        return (await reaches(theirs, await addressOf(ours))) || undefined;
      });
      await untilRestored();
      expect(await reaches(theirs, await addressOf(ours))).toBe(false);
      await here.leave();
    });

    it('is of no weight where no two networks run', async () => {
      const { ours, theirs } = await lose();
      await podman('rm', '--force', '--time', '0', keeperOf(ours), keeperOf(theirs));
      await untilRestored();
      await firewall('-D', ...accept);
      await here.leave();
    });
  });

  it('holds when so many networks are idle that some are removed while others run', async () => {
    here = new Installation({ ...cluster, open: (id) => cluster.open(id, { idleNetworks: 1 }) });
    const [ours, theirs] = [await here.startRunning(here.programs.serves), await here.startRunning(here.programs.idle)];
    // The look at whether it holds, which would mend it, is not due again below.
    await here.listed();
    for (let count = 0; count < 3; count += 1)
      await here.driver.remove((await here.startRunning(here.programs.idle)).ref, soon());
    const ofOurs = async () =>
      (await listed('network', 'ls', '--format', '{{.Name}}')).filter((name) => name.includes(here.id));
    expect(await ofOurs()).toHaveLength(5);
    await here.listed();
    expect(await ofOurs()).toHaveLength(3);
    expect(await reaches(theirs, await addressOf(ours))).toBe(false);
    await here.leave();
  });

  it('holds in a network in which nothing ran any more, for the pod that starts next', async () => {
    const ours = await here.startRunning(here.programs.serves);
    const before = here.pod(here.programs.exits(0));
    await here.start(before, 'ended');
    await podman('rm', '--force', '--time', '0', keeperOf(before));
    await here.listed();
    const next = await here.startRunning(here.programs.idle, { owner: before.owner });
    expect(await reaches(next, await addressOf(ours))).toBe(false);
    await here.leave();
  });
});
