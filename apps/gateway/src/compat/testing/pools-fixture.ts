import type { AvailablePool, MeteredSubscription } from '@atoll/contracts/gpuaas';
import type { ExposedService, FoundVolume, Pod } from '@atoll/contracts/pods';
import { teamId } from '../../testing/team-fixture.js';

export const created_at = '2026-10-01T00:00:00.000Z';

export function aPool(at: number): AvailablePool {
  const profiles = [
    { profile: '3g.40gb', v_ram_gb: 40, available_vgpus: 2, unit_price: '4', currency: 'USD' },
    {
      profile: '1g.10gb',
      v_ram_gb: 10,
      available_vgpus: 7,
      ...(at === 2 ? { unit_price: null, currency: null } : { unit_price: '1.333333333', currency: 'USD' }),
    },
  ];
  const place = { pool_id: String(at), pool_name: `pool-${at}`, gpuaas_id: '7', region_id: '3', board: 'A100-80GB' };
  return { ...place, sharing_mode: 'Spatial', isolation: 'hardware', profiles };
}

export const aPod = (pod_name: string): Pod =>
  ({
    pod_name,
    subscription_id: '2',
    status: 'running',
    vgpus: 1,
    image: 'docker.io/library/python:3.13',
    volumes: [{ volume_id: '5', path: '/data' }],
  }) as Pod;

export const aService = (): ExposedService => ({
  service_id: '5',
  pod_name: 'a-qwert',
  service_name: 'web',
  port: 80,
  protocol: 'HTTP',
  external_port: 30_100,
  ssl_enabled: true,
  host: 'gpu.example.com',
  url: 'https://gpu.example.com:30100',
  status: 'active',
  created_at,
  updated_at: created_at,
});

export function aVolume(volume_id: string, mount_point: string | null = null): FoundVolume {
  return {
    volume_id,
    name: `v${volume_id}`,
    team_id: teamId,
    workspace_id: teamId,
    region_id: '3',
    gpuaas_id: '7',
    size_in_gb: 100,
    used_size_in_gb: null,
    status: 'active',
    reason: null,
    created_at,
    mount_point,
  };
}

export const aSubscription = (at: number, status: MeteredSubscription['status']): MeteredSubscription =>
  ({
    subscription_id: String(at),
    team_id: teamId,
    pool_id: '1',
    pool_name: 'pool-1',
    region_id: '3',
    status,
    vgpus_allocated: 2,
    metrics: { cpu_usage: 1, memory_usage: 48.25, gpu_utilization: 3 },
  }) as MeteredSubscription;
