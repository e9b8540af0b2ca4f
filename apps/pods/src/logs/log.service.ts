import { notFound, permissions, requirePermission, teamsThatAllow, type CallContext, type Caller } from '@atoll/contracts';
import { type PodLogPage, type ReadPodLogs } from '@atoll/contracts/pods';
import { Statements } from '@atoll/database';
import { AppError, invalidInput } from '@atoll/errors';
import { TeamDirectory } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { cursorOf, positionOfCursor } from './log-cursor.js';
import { comparePositions, msOfNs, nsOfMs, type LogPosition, type StoredLine } from './log-line.js';
import { SearchBounds } from './search-bounds.js';
import { LogStore, type LogPage, type LogQuery, type LogScope } from './log-store.js';

const defaultLimit = 100;
/**
 * A follower of several pods is shown nothing younger: their lines arrive one pod after the other, and what comes late would have been passed. One pod’s
 * lines arrive in order.
 */
const settleMs = 3_000;
/** Stores are asked for so many teams at once. */
const teamsAtOnce = 4;

interface SourceRow {
  no: number;
  pod_name: string;
  gpuaas_id: string;
}

/** What pods have written, for the members of their teams who may use pods. */
@Injectable()
export class LogsService {
  constructor(
    private readonly store: LogStore,
    private readonly statements: Statements,
    private readonly teams: TeamDirectory,
    private readonly searches: SearchBounds,
  ) {}

  async read(asked: ReadPodLogs, { caller }: CallContext): Promise<PodLogPage> {
    const { order = 'desc', limit = defaultLimit, search = null, cursor, pod_name } = asked;
    const after = cursor === undefined ? null : positionOfCursor(order, cursor);
    const range = rangeOf(asked, order === 'asc' && pod_name === undefined);
    const scopes = await this.scopesOf(asked, caller);
    const pages = await inTurns(scopes, (scope) => {
      const read = () => this.store.read({ ...scope, ...range, order, after, search, limit });
      return search === null ? read() : this.searches.run(scope.teamId, read);
    });
    const { lines, readTo } = merged(pages, { order, limit });
    // A follower asks again from where it is, also where nothing has been written yet.
    const next = order === 'asc' ? (readTo ?? lines.at(-1) ?? after ?? { atNs: range.sinceNs, sourceNo: 0 }) : readTo;
    return { data: await this.show(lines), next_cursor: next && cursorOf(order, next) };
  }

  /** What the caller asks for and may read: a scope for each team that has any. */
  private async scopesOf({ team_id, gpuaas_id, pod_name }: ReadPodLogs, caller: Caller): Promise<LogScope[]> {
    if (pod_name !== undefined) return this.scopesOfPod(pod_name, team_id, gpuaas_id, caller);
    const teamIds = await this.teamsOf(team_id, caller);
    const rows = await this.statements.query<{ no: number; team_id: string; gpuaas_id: string }>(
      'logs.scopes',
      'SELECT no, team_id, gpuaas_id::text FROM log_scope WHERE team_id = ANY ($1::uuid[]) AND ($2::bigint IS NULL OR gpuaas_id = $2) ORDER BY no',
      [teamIds, gpuaas_id ?? null],
    );
    return [...Map.groupBy(rows, (row) => row.team_id)].map(([teamId, ofTeam]) => ({
      teamId,
      scopes: ofTeam.map(({ no, gpuaas_id: gpuaasId }) => ({ no, gpuaasId })),
      sources: null,
    }));
  }

  private async scopesOfPod(
    podName: string,
    teamId: string | undefined,
    gpuaasId: string | undefined,
    caller: Caller,
  ): Promise<LogScope[]> {
    const [pod] = await this.statements.query<{ pod_id: string; team_id: string; gpuaas_id: string }>(
      'logs.pod',
      'SELECT pod_id, team_id, gpuaas_id::text FROM pod WHERE pod_name = $1',
      [podName],
    );
    if (!pod) throw notFound('pod');
    requirePermission(caller, pod.team_id, 'useResources', 'pod');
    if (teamId !== undefined && teamId !== pod.team_id) throw notFound('pod');
    if (gpuaasId !== undefined && gpuaasId !== pod.gpuaas_id) return [];
    const sources = await this.statements.query<{ no: number; scope_no: number }>(
      'logs.sources-of-pod',
      'SELECT no, scope_no FROM log_source WHERE pod_id = $1 ORDER BY no',
      [pod.pod_id],
    );
    const [first] = sources;
    if (!first) return [];
    return [{ teamId: pod.team_id, scopes: [{ no: first.scope_no, gpuaasId: pod.gpuaas_id }], sources: sources.map(({ no }) => ({ no })) }];
  }

  private async teamsOf(teamId: string | undefined, caller: Caller): Promise<string[]> {
    if (teamId !== undefined) {
      requirePermission(caller, teamId, 'useResources');
      await this.teams.team(teamId);
      return [teamId];
    }
    const teamIds = teamsThatAllow(caller, 'useResources');
    if (teamIds === null) {
      const message = 'a platform_admin must name team_id or pod_name';
      throw invalidInput([{ path: 'team_id', code: 'team_id', message }]);
    }
    if (teamIds.length === 0) {
      throw new AppError(
        'forbidden',
        `Reading logs takes one of the roles ${permissions.useResources.join(', ')}; in a team that requires a second factor, a session with it.`,
      );
    }
    return teamIds;
  }

  private async show(lines: readonly StoredLine[]): Promise<PodLogPage['data']> {
    if (lines.length === 0) return [];
    const rows = await this.statements.query<SourceRow>(
      'logs.shown-sources',
      `SELECT source.no, pod_name, gpuaas_id::text FROM log_source source JOIN log_scope scope ON scope.no = scope_no
       WHERE source.no = ANY ($1::integer[])`,
      [[...new Set(lines.map(({ sourceNo }) => sourceNo))]],
    );
    const sources = new Map(rows.map((row) => [row.no, row]));
    return lines.flatMap(({ atNs, sourceNo, stream, message }) => {
      const source = sources.get(sourceNo);
      if (!source) return [];
      const timestamp = new Date(msOfNs(atNs)).toISOString();
      return [{ timestamp, pod_name: source.pod_name, container: 'main', stream, message, gpuaas_id: source.gpuaas_id }];
    });
  }
}

function rangeOf({ since, until }: ReadPodLogs, isFollowOfSeveral: boolean): Pick<LogQuery, 'sinceNs' | 'untilNs'> {
  const sinceNs = since === undefined ? 0n : nsOfMs(Date.parse(since));
  const latestNs = nsOfMs(Date.now() + (isFollowOfSeveral ? -settleMs : 86_400_000));
  const untilNs = until === undefined ? latestNs : nsOfMs(Date.parse(until));
  if (until !== undefined && since !== undefined && untilNs <= sinceNs) {
    throw invalidInput([{ path: 'until', code: 'until', message: 'until must be later than since' }]);
  }
  return { sinceNs, untilNs: untilNs < latestNs ? untilNs : latestNs };
}

/** One page of several: in order, and no further than the one that was read least far. */
function merged(pages: readonly LogPage[], { order, limit }: Pick<LogQuery, 'order' | 'limit'>): LogPage {
  const [only] = pages;
  if (only && pages.length === 1) return only;
  const inOrder = (one: LogPosition, other: LogPosition) =>
    order === 'desc' ? comparePositions(other, one) : comparePositions(one, other);
  const [nearest = null] = pages.flatMap(({ readTo }) => readTo ?? []).sort(inOrder);
  const lines = pages.flatMap((page) => page.lines).sort(inOrder);
  const sure = nearest === null ? lines : lines.filter((line) => inOrder(line, nearest) <= 0);
  if (sure.length <= limit) return { lines: sure, readTo: nearest };
  const first = sure.slice(0, limit);
  return { lines: first, readTo: first.at(-1) ?? null };
}

async function inTurns<In, Out>(values: readonly In[], work: (value: In) => Promise<Out>): Promise<Out[]> {
  const results: Out[] = [];
  for (let at = 0; at < values.length; at += teamsAtOnce) {
    results.push(...(await Promise.all(values.slice(at, at + teamsAtOnce).map(work))));
  }
  return results;
}
