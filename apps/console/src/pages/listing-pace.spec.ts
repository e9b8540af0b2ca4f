import { expect, it, jest } from '@jest/globals';
import { mostOfPage } from '../api/query-client.js';

// The client of the API needs a browser. How often something is read does not depend on it.
jest.unstable_mockModule('../api/client.js', () => ({
  answerOf: undefined,
  api: undefined,
  ofTeam: undefined,
}));
const { allPodsQuery } = await import('./pods/pod-queries.js');
const { allVmsQuery } = await import('./vms/vm-queries.js');
const { allVolumesQuery } = await import('./volumes/volume-queries.js');
const { baremetalQuery, recentBaremetalQuery } = await import('./baremetal/baremetal-queries.js');
const { recentSubscriptionsQuery, subscriptionsQuery } = await import('../api/queries.js');

/** How long each of these listings rests, in milliseconds, after so many rows of that status were read. */
function restsOf(queries: readonly { refetchInterval?: unknown }[], rows: number, status: string): unknown[] {
  const state = { data: { data: Array.from({ length: rows }, () => ({ status })) } };
  return queries.map(({ refetchInterval }) => (refetchInterval as (query: object) => unknown)({ state }));
}

it.each([
  [0, 10_000],
  [1, 10_000],
  [mostOfPage, 10_000],
  [mostOfPage + 1, 20_000],
  [25 * mostOfPage, 250_000],
])('a listing of %i rows that is read whole makes a call each 10 s at most, even while they change', (rows, restMs) => {
  const queries = [allPodsQuery('1'), allVmsQuery('1'), allVolumesQuery('1')];
  for (const status of ['pending', 'running']) expect(restsOf(queries, rows, status)).toEqual([restMs, restMs, restMs]);
});

it.each([
  [mostOfPage, 'Provisioning', 1_500],
  [mostOfPage + 1, 'Provisioning', 3_000],
  [mostOfPage + 1, 'Released', 20_000],
])('%i hosts that are %s rest for each page of them', (rows, status, restMs) => {
  expect(restsOf([baremetalQuery('1', true), recentBaremetalQuery('1')], rows, status)).toEqual([restMs, restMs]);
});

it.each([
  [mostOfPage, 'subscribing', 1_500],
  [mostOfPage + 1, 'subscribing', 3_000],
  [10 * mostOfPage, 'unsubscribed', 100_000],
])('%i subscriptions that are %s, the ended ones too, rest for each hundred of them', (rows, status, restMs) => {
  const queries = [subscriptionsQuery('1', 'last_24h', true), recentSubscriptionsQuery('1')];
  expect(restsOf(queries, rows, status)).toEqual([restMs, restMs]);
});
