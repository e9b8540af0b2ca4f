import { expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { observeFigures } from './service-figures.js';
import type { RunningService } from './start-service.js';

it('a figure of a service shows each value of its label, and nothing while it cannot be read', async () => {
  const metrics = new Registry();
  let read = (): Promise<Record<string, number>> => Promise.resolve({ north: 2, unknown: 5 });
  const figure = {
    name: 'atoll_things',
    help: 'Things.',
    label: 'side',
    values: ['north', 'south'],
    read: () => read(),
  };
  observeFigures(metrics, { name: 'gpuaas' } as RunningService, [figure]);
  const series = async () => (await metrics.metrics()).split('\n').filter((line) => line.startsWith('atoll_things'));
  expect(await series()).toEqual([
    'atoll_things{service="gpuaas",side="north"} 2',
    'atoll_things{service="gpuaas",side="south"} 0',
  ]);
  read = () => Promise.reject(new Error('no database'));
  expect(await series()).toEqual([]);
  read = () => Promise.resolve({ south: 1 });
  expect(await series()).toEqual([
    'atoll_things{service="gpuaas",side="north"} 0',
    'atoll_things{service="gpuaas",side="south"} 1',
  ]);
});
