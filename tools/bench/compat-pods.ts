import type pg from 'pg';
import type { CompatCase } from './compat-case.js';
import { inTurn, makePool, makeSubscribers, until, type Subscriber } from './gpuaas-inventory.js';
import type { Installation } from './installation.js';

const atOnce = 4;
const perPage = 100;
/** One slice for each pod and for each subscription that is measured; seven slices a GPU. */
const slicesOf = (pods: number, subscriptions: number): number => Math.ceil((pods + subscriptions) / 7) + 1;

export interface Sizes {
  /** Of one team. */
  readonly pods: number;
  readonly members: number;
  /** Subscriptions that may be made, by old and by new calls together. */
  readonly subscriptions: number;
}

interface Image {
  readonly id: string;
  readonly reference: string;
}

/** Old calls that change something, and old listings of many. */
export async function makeWritesAndListings(
  platform: Installation,
  mount: Installation,
  client: pg.Client,
  { pods, members, subscriptions }: Sizes,
): Promise<CompatCase[]> {
  const poolId = await makePool(platform, client, slicesOf(pods, subscriptions));
  const [owner, ...subscribers] = await makeSubscribers(platform, client, 1 + subscriptions);
  if (!owner) throw new Error('There is no team.');
  const image = await allowImage(platform, [owner, ...subscribers]);
  const podNames = await makePods(platform, client, { owner, poolId, image, count: pods });
  await inTurn(1, Math.ceil(members / perPage), async (at) => {
    // The owner is the first of them.
    const length = Math.min(perPage, members - 1 - at * perPage);
    const people = Array.from({ length }, (_, one) => ({
      email: `p${at}-${one}@example.com`,
      name: `P ${one}`,
      role: 'viewer',
    }));
    await mount.call('POST', `/team/${owner.team_id}/invite`, JSON.stringify(people));
  });
  return [
    subscribing(platform, mount, { poolId, image, subscribers }),
    ...writesTo(platform, mount, podNames[0] ?? ''),
    ...listings(platform, mount, owner, { pods, members }),
  ];
}

/** Their policy names one image. */
async function allowImage(platform: Installation, teams: readonly Subscriber[]): Promise<Image> {
  const objects = [{ name: 'Python', reference: 'python:3.13' }];
  const policy = await platform.send<{ id: string; objects: Image[] }>('POST', '/policy/image', {
    name: 'bench',
    objects,
  });
  await inTurn(atOnce, teams.length, (at) =>
    platform.call('POST', `/policy/image/${policy.id}/assign-team`, JSON.stringify({ team_id: teams[at]?.team_id })),
  );
  const [image] = policy.objects;
  if (!image) throw new Error('The policy has no image.');
  return image;
}

async function makePods(
  platform: Installation,
  client: pg.Client,
  { owner: { team_id }, poolId, image, count }: { owner: Subscriber; poolId: string; image: Image; count: number },
): Promise<string[]> {
  const terms = { team_id, pool_id: poolId, vgpus: count };
  const { subscription_id } = await platform.send<{ subscription_id: string }>('POST', '/gpuaas/pool/subscribe', terms);
  await until(
    client,
    `SELECT EXISTS (SELECT FROM gpuaas.subscription WHERE subscription_id = ${subscription_id} AND state = 'active') AS done`,
  );
  const names = await inTurn(atOnce, count, async () => {
    const pod = { team_id, subscription_id, name: 'job', image: image.reference };
    return (await platform.send<{ pod_name: string }>('POST', '/pods', pod)).pod_name;
  });
  await until(client, `SELECT count(*) = ${count} AS done FROM pods.pod WHERE state = 'running'`);
  return names;
}

/** Each call takes a team of its own: a team has one subscription to a pool by the mount. */
function subscribing(
  platform: Installation,
  mount: Installation,
  { poolId: pool_id, image, subscribers }: { poolId: string; image: Image; subscribers: Subscriber[] },
): CompatCase {
  const next = (): string => {
    const team = subscribers.pop();
    if (!team) throw new Error('All teams have subscribed.');
    return team.team_id;
  };
  return {
    name: 'POST /gpuaas/pool/subscribe, image',
    share: 0.2,
    old: () =>
      mount.send('POST', '/gpuaas/pool/subscribe', { team_id: next(), pool_id, vgpus: 1, image_uuid: image.id }),
    main: async () => {
      const team_id = next();
      const asked = { team_id, pool_id, vgpus: 1, unique: true };
      const { subscription_id } = await platform.send<{ subscription_id: string }>(
        'POST',
        '/gpuaas/pool/subscribe',
        asked,
      );
      await platform.send('POST', '/pods', { team_id, subscription_id, name: 'gpu', image: image.reference });
    },
  };
}

/** To a pod that runs. */
function writesTo(platform: Installation, mount: Installation, pod_name: string): CompatCase[] {
  let services = 0;
  const service = () => {
    services += 1;
    return { pod_name, service_name: `web-${services}`, port: 8080 };
  };
  return [
    {
      name: 'POST /pods/expose-service',
      old: () => mount.send('POST', '/pods/expose-service', { ...service(), service_type: 'http' }),
      main: () => platform.send('POST', '/pods/expose-service', { ...service(), protocol: 'HTTP' }),
    },
    {
      name: 'POST /pods/action',
      old: () => mount.send('POST', '/pods/action', { pod_name, pod_action: 'start' }),
      main: () => platform.send('POST', '/pods/action', { pod_name, action: 'start' }),
    },
  ];
}

function listings(
  platform: Installation,
  mount: Installation,
  { team_id }: Subscriber,
  { pods, members }: Pick<Sizes, 'pods' | 'members'>,
): CompatCase[] {
  const pages = (path: string, count: number, first: number) =>
    Array.from({ length: Math.ceil(count / perPage) }, (_, at) => `${path}limit=${perPage}&page=${first + at}`);
  const podPages = pages(`/pods?team_id=${team_id}&`, pods, 1);
  const all = (paths: readonly string[]) => () => Promise.all(paths.map((path) => platform.call('GET', path)));
  return [
    {
      name: `GET /instances/unified, ${pods} pods`,
      share: 0.2,
      old: () => mount.call('GET', `/instances/unified?team_id=${team_id}&per_page=${pods}`),
      main: all([`/instance?team_id=${team_id}`, ...podPages]),
    },
    {
      name: `GET /gpuaas/pool-subscription, ${pods} pods`,
      share: 0.2,
      old: () => mount.call('GET', `/gpuaas/pool-subscription?team_id=${team_id}`),
      main: all([`/gpuaas/pool-subscription?team_id=${team_id}`, ...podPages]),
    },
    {
      name: `GET /team/{id}/members, ${members}`,
      share: 0.2,
      old: () => mount.call('GET', `/team/${team_id}/members?itemsPerPage=${members}`),
      main: all(pages(`/team/${team_id}/members?`, members, 0)),
    },
  ];
}
