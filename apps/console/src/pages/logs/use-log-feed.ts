import { useEffect, useMemo, useState, useSyncExternalStore } from 'react';
import { answerOf, api } from '../../api/client.js';
import { asProblem, isPassing, type Problem } from '../../api/problem.js';
import { pollMs } from '../../api/query-client.js';
import { instantOfAddress, LogFeed, type FeedState } from './log-feed.js';
import { startOfRange, type LogSearch } from './log-search.js';

/** What is read; a change begins a new feed. */
export interface FeedFilters {
  teamId: string;
  search: Pick<LogSearch, 'pod' | 'q' | 'range' | 'since' | 'until'>;
  /** Address of the line to begin at. */
  startAt: string | undefined;
}

export interface LiveFeed {
  /** Another one is another feed. */
  key: string;
  state: FeedState;
  problem: Problem | null;
  loadOlder: () => void;
  loadNewer: () => void;
  /** Reads again after a problem that does not pass by itself. */
  retry: () => void;
}

function feedOf({ teamId, search: { pod, q, range, since, until }, startAt }: FeedFilters): LogFeed {
  const filters = { team_id: teamId, ...(pod !== undefined && { pod_name: pod }) };
  return new LogFeed(
    (query, isSearch) =>
      answerOf(
        api.GET('/api/logs/pods', { params: { query: { ...filters, ...query, ...(isSearch && q && { search: q }) } } }),
      ),
    {
      since: range ? startOfRange(range) : since,
      until,
      at: startAt === undefined ? undefined : instantOfAddress(startAt),
      isOfSeveralPods: pod === undefined,
    },
  );
}

/** Follows a log while it is live and the tab is in view. */
export function useLogFeed(filters: FeedFilters, isLive: boolean): LiveFeed {
  const { pod, q, range, since, until } = filters.search;
  const key = JSON.stringify({ ...filters, search: { pod, q, range, since, until } });
  const feed = useMemo(() => feedOf(JSON.parse(key) as FeedFilters), [key]);
  const state = useSyncExternalStore(feed.subscribe, feed.snapshot);
  const [failure, setFailure] = useState<{ feed: LogFeed; problem: Problem } | null>(null);
  const [tries, setTries] = useState(0);
  useEffect(() => {
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async (): Promise<number | null> => {
      try {
        await feed.start();
        const hasMore = isLive && document.visibilityState === 'visible' && (await feed.loadNewer());
        setFailure(null);
        if (!isLive) return null;
        return hasMore ? 0 : pollMs.busy;
      } catch (error) {
        const problem = asProblem(error);
        setFailure({ feed, problem });
        return isPassing(problem) ? (problem.retryAfterSeconds ?? 3) * 1_000 : null;
      }
    };
    const follow = async () => {
      const pauseMs = await read();
      if (!isOver && pauseMs !== null) timer = setTimeout(() => void follow(), pauseMs);
    };
    void follow();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [feed, isLive, tries]);
  const once = (step: () => Promise<unknown>) => () =>
    void step().catch((error: unknown) => setFailure({ feed, problem: asProblem(error) }));
  return {
    key,
    state,
    problem: failure?.feed === feed ? failure.problem : null,
    loadOlder: once(() => feed.loadOlder()),
    loadNewer: once(() => feed.loadNewer()),
    retry: () => setTries(tries + 1),
  };
}
