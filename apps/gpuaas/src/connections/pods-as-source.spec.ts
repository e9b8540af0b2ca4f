import { expect, it } from '@jest/globals';
import type { Rpc } from '@atoll/rpc';
import { PodsAsSource } from './pods-as-source.js';

it('the pods service is not waited for once a refresh is over, even if it was over before it began', async () => {
  const answer = Promise.withResolvers<{ data: never[] }>();
  const source = new PodsAsSource({ call: () => answer.promise } as unknown as Rpc);
  const read = (signal: AbortSignal) => source.read('a team', [], signal);
  const stopping = new AbortController();
  const reads = Promise.allSettled([read(stopping.signal), read(AbortSignal.abort('before'))]);
  stopping.abort('meanwhile');
  setImmediate(() => answer.resolve({ data: [] }));
  expect(await reads).toMatchObject([{ reason: 'meanwhile' }, { reason: 'before' }]);
});
