import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';

/** Longer than the two seconds within which a process that works says whether it is ready. */
const answerPatienceMs = 3_000;
const againMs = 100;

/**
 * Resolves when all processes have said on `/readyz` that they are ready; `addresses` has their URLs by name. What
 * keeps them from it is told each `tellEveryMs`, 10 s unless given, in a line for each process. Throws when `signal` is
 * aborted.
 */
export async function untilReady(
  addresses: ReadonlyMap<string, string>,
  options: { signal: AbortSignal; tell: (line: string) => void; tellEveryMs?: number },
): Promise<void> {
  const { signal, tell, tellEveryMs = 10_000 } = options;
  let toldAtMs = performance.now();
  for (const waiting = new Map(addresses); waiting.size > 0;) {
    const reasons = await Promise.all([...waiting].map(async ([name, url]) => ({ name, reason: await reasonOf(url) })));
    signal.throwIfAborted();
    for (const { name, reason } of reasons) if (reason === null) waiting.delete(name);
    if (performance.now() - toldAtMs >= tellEveryMs) {
      toldAtMs = performance.now();
      for (const { name, reason } of reasons) if (reason !== null) tell(`Still waiting for ${name}: ${reason}`);
    }
    if (waiting.size > 0) await delay(againMs, undefined, { signal });
  }
}

/** Why a process is not ready, in words; null where it is. */
async function reasonOf(url: string): Promise<string | null> {
  try {
    // One that has taken the connection and hangs is asked again. Not by `fetch`, which refuses some ports, such as
    // 6000 and 10080.
    const request = get(`${url}/readyz`, { agent: false, signal: AbortSignal.timeout(answerPatienceMs) });
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    const { reasons = [] } = (await json(answer)) as { reasons?: { name: string; reason: string }[] };
    if (answer.statusCode === 200) return null;
    return (
      reasons.map(({ name, reason }) => `${name}: ${reason}`).join('; ') || `its answer has status ${answer.statusCode}`
    );
  } catch (error) {
    const { message, cause, code } = error as NodeJS.ErrnoException & { cause?: Error };
    // A name with several addresses, of which none answers, has a code alone.
    return (cause?.message ?? message) || (code ?? 'no answer');
  }
}
