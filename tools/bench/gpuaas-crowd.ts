import { join } from 'node:path';
import { createApiKey } from '@atoll/api-keys';
import type pg from 'pg';
import { inTurn, makePool, makeSubscribers, until, type Subscriber } from './gpuaas-inventory.js';
import { Installation, type Answer } from './installation.js';
import { median } from './measure.js';
import { withClient } from './with-client.js';

/** vGPUs of each A100 that a subscription may grow by beside its first. */
const slicesPerGpu = 7;

export interface CrowdLoad {
  teams: number;
  /** Requests that each team has under way at once. */
  atOnce: number;
  /** Subscriptions of each team. */
  held: number;
  rounds: number;
}

export interface CrowdFigures {
  kind: string;
  perSecond: number;
  medianMs: number;
  longestMs: number;
  /**
   * How often a request was told to come again, in all rounds. It does so at once, and has waited since it came first.
   */
  refused: number;
}

interface Kind {
  name: string;
  /** What the answer has to be. */
  status: number;
  ask: (at: number) => Promise<Answer>;
}

/**
 * Teams that each have some requests at once under way for one pool: of one kind after the other. The first round does
 * not count.
 */
export async function measureCrowd(url: string, folder: string, load: CrowdLoad): Promise<CrowdFigures[]> {
  const { teams, atOnce, held } = load;
  const platform = await Installation.start(url, join(folder, 'crowd'), createApiKey(), teams * atOnce);
  const figures = await withClient(url, async (client) => {
    const poolId = await makePool(platform, client, Math.ceil((2 * teams * held) / slicesPerGpu));
    const subscribers = await makeSubscribers(platform, client, teams);
    const rounds: CrowdFigures[][] = [];
    for (let round = -1; round < load.rounds; round++) {
      const figures = await measureRound(platform, client, load, poolId, subscribers);
      if (round >= 0) rounds.push(figures);
    }
    return (rounds[0] ?? []).map(({ kind }, at) => ({
      kind,
      perSecond: median(rounds.map((round) => round[at]?.perSecond ?? 0)),
      medianMs: median(rounds.map((round) => round[at]?.medianMs ?? 0)),
      longestMs: median(rounds.map((round) => round[at]?.longestMs ?? 0)),
      refused: rounds.reduce((sum, round) => sum + (round[at]?.refused ?? 0), 0),
    }));
  });
  await platform.stop();
  return figures;
}

async function measureRound(
  platform: Installation,
  client: pg.Client,
  load: CrowdLoad,
  pool_id: string,
  subscribers: readonly Subscriber[],
): Promise<CrowdFigures[]> {
  const ids: string[] = [];
  const resized = (vgpus: number) => (at: number) =>
    platform.ask('PUT', `/gpuaas/pool-subscription/${ids[at]}`, JSON.stringify({ vgpus }));
  const kinds: Kind[] = [
    {
      name: 'subscriptions',
      status: 202,
      ask: async (at) => {
        const asked = JSON.stringify({ ...subscribers[at % subscribers.length], pool_id, vgpus: 1 });
        const answer = await platform.ask('POST', '/gpuaas/pool/subscribe', asked);
        ids[at] = (JSON.parse(answer.body.toString()) as { subscription_id: string }).subscription_id;
        return answer;
      },
    },
    { name: 'resizes to more', status: 202, ask: resized(2) },
    { name: 'resizes to fewer', status: 202, ask: resized(1) },
    {
      name: 'unsubscriptions',
      status: 200,
      ask: (at) => platform.ask('POST', '/gpuaas/pool/unsubscribe', JSON.stringify({ subscription_id: ids[at] })),
    },
  ];
  const figures: CrowdFigures[] = [];
  for (const kind of kinds) {
    figures.push(await measureKind(load, kind));
    await until(
      client,
      `SELECT NOT EXISTS (SELECT FROM gpuaas.subscription WHERE state NOT IN ('active', 'unsubscribed'))
         AND NOT EXISTS (SELECT FROM gpuaas.outbox) AND NOT EXISTS (SELECT FROM gpuaas.capacity_change) AS done`,
    );
  }
  return figures;
}

async function measureKind({ teams, atOnce, held }: CrowdLoad, { name, status, ask }: Kind): Promise<CrowdFigures> {
  const tookMs: number[] = [];
  let refused = 0;
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: teams }, (_, team) =>
      inTurn(atOnce, held, async (number) => {
        const askedAt = performance.now();
        let answer = await ask(number * teams + team);
        for (; answer.status === 503; answer = await ask(number * teams + team)) refused += 1;
        if (answer.status !== status)
          throw new Error(`${name}: ${answer.status} ${answer.body.toString('utf8', 0, 500)}`);
        tookMs.push(performance.now() - askedAt);
      }),
    ),
  );
  const wholeMs = performance.now() - startedAt;
  return {
    kind: name,
    perSecond: (1000 * tookMs.length) / wholeMs,
    medianMs: median(tookMs),
    longestMs: Math.max(...tookMs),
    refused,
  };
}
