import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { podBatches, sharedVolumes } from '@atoll/contracts/pods';
import { teamId } from '../../testing/team-fixture.js';
import { startCompat, type CompatUnderTest } from '../testing/compat-fixture.js';
import { aVolume } from '../testing/pools-fixture.js';

let compat: CompatUnderTest;
let key: string;
beforeAll(async () => {
  compat = await startCompat();
  const { services } = compat.gateway;
  key = services.key();
  services.answer(podBatches.volumes, () => ({ data: [aVolume('5', '/data'), aVolume('6')] }));
  services.answer(sharedVolumes.create, ({ size_in_gb }) => ({ ...aVolume('7'), size_in_gb }));
  services.answer(sharedVolumes.delete, ({ volume_id }) => aVolume(volume_id));
});
afterAll(() => compat.close());

const call = (method: string, url: string, body?: unknown) =>
  compat.call<Record<string, unknown>>(method, url, { key, body });

describe('shared volumes', () => {
  it.each([`team_id=${teamId}`, `team_id[eqstr]=${teamId}&page=1&per_page=10`, `team_id%5Beqstr%5D=${teamId}`])(
    'are listed whole with where they are mounted, by one question to the service: %s',
    async (query) => {
      const before = compat.gateway.services.calls.length;
      const volume = { region_id: 3, team_id: teamId, size_in_gb: 100, cost: null };
      expect((await call('GET', `/api/shared-volumes?${query}`)).body).toEqual([
        { id: 5, name: 'v5', ...volume, mount_point: '/data', status: 'IN_USE' },
        { id: 6, name: 'v6', ...volume, mount_point: null, status: 'AVAILABLE' },
      ]);
      const asked = compat.gateway.services.calls.slice(before).filter(({ subject }) => subject.startsWith('pods.'));
      expect(asked.map(({ subject, input }) => [subject, input])).toEqual([
        [podBatches.volumes.subject, { team_id: teamId }],
      ]);
    },
  );

  it('are created in a size that is on offer, and deleted', async () => {
    const sizes = `/api/shared-volumes/shared-storage-blocks?region_id=3&team_id=${teamId}`;
    const [block] = (await call('GET', sizes)).body as unknown as { id: number; size: number }[];
    const order = { team_id: teamId, region_id: '3', name: 'x', storage_block_id: block?.id };
    expect((await call('POST', '/api/shared-volumes', order)).body).toMatchObject({
      id: 7,
      size_in_gb: block?.size,
      mount_point: null,
      status: 'AVAILABLE',
    });
    expect((await call('POST', '/api/shared-volumes', { ...order, storage_block_id: 11 })).status).toBe(400);
    expect((await call('GET', '/api/shared-volumes')).status).toBe(400);
    expect((await call('DELETE', '/api/shared-volumes/7')).body).toMatchObject({ id: 7 });
  });
});
