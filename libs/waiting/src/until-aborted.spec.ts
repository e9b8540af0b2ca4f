import { describe, expect, it } from '@jest/globals';
import { untilAborted } from './until-aborted.js';

const never = new Promise<string>(() => undefined);

describe('work until a signal is aborted', () => {
  it('has its outcome where it is done before', async () => {
    const { signal } = new AbortController();
    expect(await untilAborted(signal, Promise.resolve('done'))).toBe('done');
    await expect(untilAborted(signal, Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  });

  it('ends with the reason of the signal, whatever comes of the work', async () => {
    const [stopping, work] = [new AbortController(), Promise.withResolvers<string>()];
    const outcome = untilAborted(stopping.signal, work.promise);
    stopping.abort(new Error('The service is stopping.'));
    await expect(outcome).rejects.toThrow('The service is stopping.');
    work.reject(new Error('failed later'));
  });

  it('ends at once where the signal was aborted before', async () => {
    await expect(untilAborted(AbortSignal.abort(new Error('stopped')), never)).rejects.toThrow('stopped');
  });
});
