import { useNavigate } from '@tanstack/react-router';
import { logInstant } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { Copy } from '../../parts/copy.js';
import { Card } from '../../parts/page.js';
import type { LogLine } from './log-feed.js';

/** The selected line, whole. The address of the page leads to it. */
export function LogLineCard({ line, zone }: { line: LogLine; zone: string }) {
  const navigate = useNavigate({ from: '/teams/$teamId/logs' });
  const { day, clock } = logInstant(line.timestamp, zone);
  return (
    <Card
      title="Selected line"
      actions={
        <>
          <Copy name="The link" label="Copy the link" value={location.href} />
          <Copy name="The line" label="Copy the line" value={line.message} />
          <Button
            isSmall
            onPress={() =>
              void navigate({ search: ({ at: _at, ...search }) => search, replace: true, resetScroll: false })
            }
          >
            Close
          </Button>
        </>
      }
    >
      <p className="hint given">
        {day}, {clock} {zone}, <code>{line.pod_name}</code>
        {line.stream !== null && `, ${line.stream}`}
      </p>
      <pre className="log-whole given">{line.message}</pre>
    </Card>
  );
}
