import '../../design/logs.css';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { instant } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { Card, Page } from '../../parts/page.js';
import { Empty, ProblemNote, Skeleton } from '../../parts/states.js';
import { useUser } from '../../api/user-context.js';
import { indexOfAddress } from './log-feed.js';
import { LogFilters } from './log-filters.js';
import { LogLineCard } from './log-line-card.js';
import { isBackwards, type LogSearch } from './log-search.js';
import { LogTable } from './log-table.js';
import { useLogFeed, type FeedFilters, type LiveFeed } from './use-log-feed.js';

export function LogsPage() {
  const { teamId } = useParams({ from: '/in/teams/$teamId' });
  const search = useSearch({ from: '/in/teams/$teamId/logs' });
  const { pod } = search;
  return (
    <Page
      title="Logs"
      lead={pod === undefined ? 'What the pods of the team have written.' : <code className="given">{pod}</code>}
    >
      <LogView key={teamId} teamId={teamId} search={search} />
    </Page>
  );
}

function LogView({ teamId, search }: { teamId: string; search: LogSearch }) {
  const navigate = useNavigate({ from: '/teams/$teamId/logs' });
  const { timezone } = useUser();
  const { until, at, live } = search;
  // A link begins at its line; a line that is selected here is among what was read.
  const [startAt, setStartAt] = useState(at);
  const isLive = live !== 'off' && until === undefined && at === undefined;
  const change = (next: LogSearch) => {
    setStartAt(undefined);
    void navigate({ search: next, replace: true, resetScroll: false });
  };
  return (
    <>
      <LogFilters teamId={teamId} search={search} zone={timezone} isLive={isLive} onChange={change} />
      {isBackwards(search) ? (
        <Card title="Lines">
          <Empty title="The range does not end after it begins" />
        </Card>
      ) : (
        <Lines filters={{ teamId, search, startAt }} zone={timezone} isLive={isLive} onChange={change} />
      )}
    </>
  );
}

interface LinesProps {
  filters: FeedFilters & { search: LogSearch };
  zone: string;
  isLive: boolean;
  onChange: (search: LogSearch) => void;
}

function Lines({ filters, zone, isLive, onChange }: LinesProps) {
  const { search } = filters;
  const { pod, q, at } = search;
  const feed = useLogFeed(filters, isLive);
  const { lines, older } = feed.state;
  const selected = at === undefined ? -1 : indexOfAddress(lines, at);
  const line = lines[selected];
  return (
    <>
      {feed.problem !== null && <ProblemNote problem={feed.problem} onRetry={feed.retry} isAskedAgain />}
      {older === 'unread' && feed.problem === null && <Skeleton height={480} label="Loading the log" />}
      {older !== 'unread' && (
        <Card title={q === undefined ? 'Lines' : 'Lines found'} actions={<span className="hint">Times in {zone}</span>}>
          <Before feed={feed} zone={zone} onEarlier={(end) => onChange({ ...withoutTimes(search), until: end })} />
          {lines.length === 0 ? (
            <Empty title={q === undefined ? 'Nothing was written' : 'No line was found'}>
              {isLive ? 'New lines appear here by themselves.' : 'Choose another range or another pod.'}
            </Empty>
          ) : (
            <LogTable
              key={feed.key}
              feed={feed.state}
              zone={zone}
              isOfSeveralPods={pod === undefined}
              isLive={isLive}
              selected={selected}
              onTop={() => {
                if (older === 'more') feed.loadOlder();
              }}
            />
          )}
          <After feed={feed} isLive={isLive} />
        </Card>
      )}
      {line && <LogLineCard line={line} zone={zone} />}
    </>
  );
}

function withoutTimes({ range: _range, since: _since, until: _until, at: _at, ...others }: LogSearch): LogSearch {
  return others;
}

/** The notice before the first line, and the button to load earlier lines. */
function Before({
  feed: { state, loadOlder },
  zone,
  onEarlier,
}: {
  feed: LiveFeed;
  zone: string;
  onEarlier: (until: string) => void;
}) {
  const oldest = state.lines[0]?.timestamp;
  if (state.older === 'more') {
    return (
      <div className="log-edge">
        <Button isSmall onPress={loadOlder}>
          Older lines
        </Button>
      </div>
    );
  }
  if (state.older === 'full' && oldest !== undefined) {
    return (
      <div className="log-edge">
        <span className="hint">These are as many lines as fit.</span>
        <Button isSmall onPress={() => onEarlier(oldest)}>
          Lines before {instant(oldest, zone)}
        </Button>
      </div>
    );
  }
  return oldest === undefined ? null : <p className="log-edge hint">The first line of this range</p>;
}

function After({ feed: { state, loadNewer }, isLive }: { feed: LiveFeed; isLive: boolean }) {
  if (isLive) return <p className="log-edge hint">Following: new lines appear as they are written</p>;
  if (state.isAtEnd) return <p className="log-edge hint">The last line of this range so far</p>;
  return (
    <div className="log-edge">
      <Button isSmall onPress={loadNewer}>
        Newer lines
      </Button>
    </div>
  );
}
