import {
  notFound,
  permissions,
  requirePermission,
  teamsThatAllow,
  type CallContext,
  type Caller,
} from '@atoll/contracts';
import { type PodLogPage, type ReadPodLogs } from '@atoll/contracts/pods';
import { Statements } from '@atoll/database';
import { AppError, invalidField, invalidInput } from '@atoll/errors';
import { remainingMs } from '@atoll/rpc';
import { TeamDirectory } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { ClusterRows } from '../cluster/cluster-rows.js';
import { cursorOf, positionsOfCursor } from './log-cursor.js';
import { comparePositions, msOfNs, nsOfMs, type LogPosition, type StoredLine } from './log-line.js';
import { earliest, isUnread, partsOfSources, placesAfter, type LogPart, type LogRange } from './log-parts.js';
import { SearchBounds } from './search-bounds.js';
import { settledNs } from './settled.js';
import { LogStore, type LogPage, type LogQuery } from './log-store.js';

const defaultLimit = 100;
/** Stores are asked for so many teams at once. */
const teamsAtOnce = 4;
/** How long the searches of one request may look, one team after the other. */
const searchMs = 1_000;

/** What is asked for, and where the caller is in it. */
interface Reading {
  readonly asked: ReadPodLogs;
  readonly caller: Caller;
  readonly range: LogRange;
  readonly from: readonly LogPosition[];
}

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
    private readonly clusters: ClusterRows,
  ) {}

  async read(asked: ReadPodLogs, context: CallContext): Promise<PodLogPage> {
    const { order = 'desc', limit = defaultLimit, cursor, pod_name } = asked;
    const search = asked.search || null;
    const from = cursor === undefined ? [] : positionsOfCursor(order, cursor);
    const range = rangeOf(asked);
    const reading = { asked, caller: context.caller, range, from };
    const parts = pod_name === undefined ? await this.partsOfTeams(reading) : await this.partsOfPod(pod_name, reading);
    const pages = await inTurns(parts.filter(isUnread), context, (teamId, ofTeam, turns) => {
      const query = { order, search, searchMs: searchMs / turns, limit };
      const queries = ofTeam.map((part) => ({ ...part, ...query }));
      const read = async () => {
        const found = await this.store.readOfTeam(teamId, queries);
        return found.map((page, at) => [ofTeam[at] as LogPart, page] as const);
      };
      return search === null ? read() : this.searches.run(teamId, context, read);
    });
    const { lines, readTo } = merged([...pages.values()], { order, limit });
    const data = await this.show(lines);
    if (order === 'desc') return { data, next_cursor: readTo && cursorOf(order, [readTo]) };
    // A follower asks again from where it is, also where nothing has been written yet.
    const places = placesAfter(parts, pages, readTo);
    const place = readTo ?? lines.at(-1) ?? earliest(from) ?? { atNs: range.sinceNs, sourceNo: 0 };
    return { data, next_cursor: cursorOf(order, places.length > 0 ? places : [place]) };
  }

  /** Of each team that has any, what the caller asks for and may read. */
  private async partsOfTeams({ asked, caller, range, from }: Reading): Promise<LogPart[]> {
    const { team_id, gpuaas_id } = asked;
    const teamIds = await this.teamsOf(team_id, caller);
    const rows = await this.statements.query<{ no: number; team_id: string; gpuaas_id: string }>(
      'SELECT no, team_id, gpuaas_id::text FROM log_scope WHERE team_id = ANY ($1::uuid[]) AND ($2::bigint IS NULL OR gpuaas_id = $2) ORDER BY no',
      [teamIds, gpuaas_id ?? null],
    );
    if (rows.length === 0 && gpuaas_id !== undefined) await this.clusters.read(gpuaas_id);
    const untilNs = await this.untilOf(rows, asked, range);
    return [...Map.groupBy(rows, (row) => row.team_id)].map(([teamId, ofTeam]) => ({
      ...range,
      untilNs,
      teamId,
      scopes: ofTeam.map(({ no, gpuaas_id: gpuaasId }) => ({ no, gpuaasId })),
      sources: null,
      after: earliest(from),
    }));
  }

  /**
   * A follower of several pods is shown nothing that is not settled: their lines arrive one pod after the other, and
   * what comes late would have been passed. A follower of one pod has a place in each of its sources, of which the
   * lines arrive in order.
   */
  private async untilOf(scopes: readonly { no: number }[], { order }: ReadPodLogs, range: LogRange): Promise<bigint> {
    if (order !== 'asc' || scopes.length === 0) return range.untilNs;
    const settled = await settledNs(
      this.statements,
      scopes.map(({ no }) => no),
    );
    return settled < range.untilNs ? settled : range.untilNs;
  }

  private async partsOfPod(podName: string, { asked, caller, range, from }: Reading): Promise<LogPart[]> {
    const [pod] = await this.statements.query<{ pod_id: string; team_id: string; gpuaas_id: string }>(
      'SELECT pod_id, team_id, gpuaas_id::text FROM pod WHERE pod_name = $1',
      [podName],
    );
    if (!pod) throw notFound('pod');
    requirePermission(caller, pod.team_id, 'useResources', 'pod');
    if (asked.team_id !== undefined) {
      if (asked.team_id !== pod.team_id) throw notFound('pod');
      await this.teams.team(asked.team_id);
    }
    if (asked.gpuaas_id !== undefined && asked.gpuaas_id !== pod.gpuaas_id) {
      await this.clusters.read(asked.gpuaas_id);
      return [];
    }
    const sources = await this.statements.query<{ no: number; scope_no: number; last_ns: string }>(
      'SELECT no, scope_no, last_ns::text FROM log_source WHERE pod_id = $1 ORDER BY no',
      [pod.pod_id],
    );
    const [first] = sources;
    if (!first) return [];
    const scope = { teamId: pod.team_id, scopes: [{ no: first.scope_no, gpuaasId: pod.gpuaas_id }], sources };
    if (asked.order !== 'asc') return [{ ...scope, ...range, after: earliest(from) }];
    const stored = sources.map(({ no, last_ns }) => ({ no, storedNs: BigInt(last_ns) }));
    return partsOfSources(scope, stored, range, from);
  }

  private async teamsOf(teamId: string | undefined, caller: Caller): Promise<string[]> {
    if (teamId !== undefined) {
      await this.teams.teamFor(caller, teamId, 'useResources');
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
        `Reading logs needs one of the roles ${permissions.useResources.join(', ')}, and a session with a second factor where the team requires it.`,
      );
    }
    return teamIds;
  }

  private async show(lines: readonly StoredLine[]): Promise<PodLogPage['data']> {
    if (lines.length === 0) return [];
    const rows = await this.statements.query<SourceRow>(
      `SELECT source.no, pod_name, gpuaas_id::text FROM log_source source JOIN log_scope scope ON scope.no = scope_no
       WHERE source.no = ANY ($1::integer[])`,
      [[...new Set(lines.map(({ sourceNo }) => sourceNo))]],
    );
    const sources = new Map(rows.map((row) => [row.no, row]));
    return lines.flatMap(({ atNs, sourceNo, podName, stream, message }) => {
      const source = sources.get(sourceNo);
      if (!source || (podName ?? source.pod_name) !== source.pod_name) return [];
      const timestamp = new Date(msOfNs(atNs)).toISOString();
      return [
        { timestamp, pod_name: source.pod_name, container: 'main', stream, message, gpuaas_id: source.gpuaas_id },
      ];
    });
  }
}

function rangeOf({ since, until }: ReadPodLogs): LogRange {
  const sinceNs = since === undefined ? 0n : nsOfMs(Date.parse(since));
  // Instants after the year 2262 are more nanoseconds than the stores count.
  const latestNs = nsOfMs(Date.now() + 86_400_000);
  const untilNs = until === undefined ? latestNs : nsOfMs(Date.parse(until));
  if (until !== undefined && since !== undefined && untilNs <= sinceNs)
    throw invalidField('until', 'until', 'must be later than since');
  const bounded = (ns: bigint): bigint => (ns < latestNs ? ns : latestNs);
  return { sinceNs: bounded(sinceNs), untilNs: bounded(untilNs) };
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

/** Some teams at once, while the caller waits; of one team all parts, so that they are one search. */
async function inTurns(
  parts: readonly LogPart[],
  context: CallContext,
  readTeam: (teamId: string, parts: readonly LogPart[], turns: number) => Promise<(readonly [LogPart, LogPage])[]>,
): Promise<ReadonlyMap<LogPart, LogPage>> {
  const pages: (readonly [LogPart, LogPage])[] = [];
  const teams = [...Map.groupBy(parts, ({ teamId }) => teamId)];
  const turns = Math.ceil(teams.length / teamsAtOnce);
  for (let at = 0; at < teams.length; at += teamsAtOnce) {
    if (at > 0 && remainingMs(context) === 0) throw tooLate();
    const some = await Promise.all(
      teams.slice(at, at + teamsAtOnce).map(([teamId, ofTeam]) => readTeam(teamId, ofTeam, turns)),
    );
    pages.push(...some.flat());
  }
  return new Map(pages);
}

function tooLate(): AppError {
  return new AppError(
    'deadline_exceeded',
    'The logs of all teams could not be read in time. Send team_id or pod_name.',
  );
}
