import { randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Member, Neighbours } from './neighbour-teams.js';

export interface Phase {
  /** Of the other teams' requests. */
  latenciesMs: number[];
  /** Those of them that were not answered with 2xx. */
  refusals: number;
  /** Answers to the busy team, by status. */
  busy: Record<number, number>;
}

/** What a member's limit of 600 a minute allows. */
const updatesPerSecond = 10;
const callsPerSecond = 5;
/** What a member may ask for at once. */
const burstOfOne = 60;

/**
 * For so many seconds, every caller reads its team five times a second and changes it once in two; `writers` of the
 * busy team do what they may.
 */
export async function runPhase(
  url: string,
  { callers, writers }: Neighbours,
  load: { seconds: number; writers: number; burst?: number },
): Promise<Phase> {
  const phase: Phase = { latenciesMs: [], refusals: 0, busy: {} };
  const agent = new Agent({ keepAlive: true });
  const endAtMs = performance.now() + load.seconds * 1000;
  const call = async (caller: Member, round: number) => {
    const isWrite = round % 10 === 9;
    const beganMs = performance.now();
    const status = isWrite ? await update(agent, url, caller) : await send(agent, url, 'GET', caller);
    phase.latenciesMs.push(performance.now() - beganMs);
    if (status >= 300) phase.refusals++;
  };
  const count = (status: number) => void (phase.busy[status] = (phase.busy[status] ?? 0) + 1);
  const write = async (writer: Member) => count(await update(agent, url, writer));
  /** In the middle of the phase all of them at once, each as often as its bucket holds. */
  const burst = async (readers: readonly Member[]) => {
    await delay((load.seconds * 1000) / 2);
    await Promise.all(
      readers.flatMap((reader) =>
        Array.from({ length: burstOfOne }, async () => count(await send(agent, url, 'GET', reader))),
      ),
    );
  };
  await Promise.all([
    ...callers.map((caller, at) =>
      paced(callsPerSecond, at / callers.length, endAtMs, (round) => call(caller, round + at)),
    ),
    burst(writers.slice(0, load.burst ?? 0)),
    ...writers
      .slice(0, load.writers)
      .map((writer, at) => paced(updatesPerSecond, at / load.writers, endAtMs, () => write(writer))),
  ]);
  agent.destroy();
  return phase;
}

/** `at`: which percentile, from 0 to 100. */
export function percentile(values: readonly number[], at: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * at) / 100))] ?? NaN;
}

/**
 * Calls `work` so often a second until the end, whether or not earlier calls have been answered; resolves when all have
 * been.
 */
async function paced(
  perSecond: number,
  phase: number,
  endAtMs: number,
  work: (round: number) => Promise<void>,
): Promise<void> {
  const running: Promise<void>[] = [];
  const beganMs = performance.now() + (phase * 1000) / perSecond;
  for (let round = 0; ; round++) {
    const atMs = beganMs + (round * 1000) / perSecond;
    if (atMs >= endAtMs) break;
    await delay(Math.max(0, atMs - performance.now()));
    running.push(work(round));
  }
  await Promise.all(running);
}

function update(agent: Agent, url: string, member: Member): Promise<number> {
  return send(agent, url, 'PUT', member, JSON.stringify({ description: randomBytes(400).toString('hex') }));
}

function send(agent: Agent, url: string, method: string, { teamId, key }: Member, json?: string): Promise<number> {
  const headers = {
    authorization: `Bearer ${key}`,
    ...(json !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) }),
  };
  return new Promise((resolve, reject) => {
    const outgoing = request(`${url}/api/team/${teamId}`, { agent, method, headers }, (incoming) => {
      incoming.on('error', reject);
      incoming.on('end', () => resolve(incoming.statusCode ?? 0));
      incoming.resume();
    });
    outgoing.on('error', reject);
    outgoing.end(json);
  });
}
