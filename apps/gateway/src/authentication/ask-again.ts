import { withPatience } from '@atoll/waiting';

const silent = Symbol('no answer yet');

/**
 * What `ask` resolves with. Where it has not settled after `silentMs` it is called once more, and whichever resolves
 * first counts. Throws what the first call throws where neither resolves.
 */
export async function askAgainWhereSilent<T>(ask: () => Promise<T>, silentMs: number): Promise<T> {
  const first = ask();
  const answer = await withPatience<T, typeof silent>(first, silentMs, silent);
  return answer === silent ? Promise.any([first, ask()]).catch(() => first) : answer;
}
