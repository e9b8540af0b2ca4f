import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import type { Schemas } from '../../api/client.js';
import { instant } from '../../format/format.js';
import { Chip } from '../../parts/chip.js';
import { Held } from '../../parts/held.js';
import { Card, Figure, Page } from '../../parts/page.js';
import { Loaded } from '../../parts/states.js';
import { may } from '../../api/access.js';
import { useUser } from '../../api/user-context.js';
import { ConnectCard } from './connect-card.js';
import { ExposedServices } from './exposed-services.js';
import { PodActions } from './pod-actions.js';
import { podQuery } from './pod-queries.js';

export function PodPage() {
  const { teamId, podName } = useParams({ from: '/in/teams/$teamId/pods/$podName' });
  const navigate = useNavigate();
  const user = useUser();
  const mayUse = may(user, teamId, 'useResources');
  const pod = useQuery(podQuery(teamId, podName));
  return (
    <Page
      title={pod.data?.name ?? podName}
      lead={pod.data && <Chip state={pod.data.status} />}
      actions={
        mayUse && (
          <Held of={pod.data}>
            {(data) => (
              <>
                {data.status === 'running' && (
                  <Link
                    className="button"
                    data-small="true"
                    to="/teams/$teamId/pods/$podName/terminal"
                    params={{ teamId, podName }}
                    preload={false}
                  >
                    Terminal
                  </Link>
                )}
                <Link
                  className="button"
                  data-small="true"
                  to="/teams/$teamId/logs"
                  params={{ teamId }}
                  search={{ pod: podName }}
                >
                  Logs
                </Link>
                <PodActions
                  pod={data}
                  onDeleted={() => void navigate({ to: '/teams/$teamId/pods', params: { teamId }, search: {} })}
                />
              </>
            )}
          </Held>
        )
      }
    >
      <Loaded query={pod} height={220}>
        {(data) => (
          <div className="stack">
            {data.reason !== null && <p className="notice given">{data.reason}</p>}
            <Facts pod={data} zone={user.timezone} />
            {mayUse && <ConnectCard pod={data} />}
            <ExposedServices podName={podName} mayUse={mayUse} />
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function Facts({ pod, zone }: { pod: Schemas['Pod']; zone: string }) {
  return (
    <Card title="What runs">
      <dl className="figures">
        <Figure name="Image" isText value={<code className="given">{pod.image}</code>} />
        <Figure name="Holds" isText value={`${pod.vgpus} × ${pod.profile}`} />
        <Figure name="Started" isText value={pod.started_at === null ? '–' : instant(pod.started_at, zone)} />
        <Figure name="Created" isText value={instant(pod.created_at, zone)} />
        <Figure
          name="Restarts"
          value={pod.restarts}
          hint={pod.exit_code === null ? undefined : `last exit code ${pod.exit_code}`}
        />
        {pod.stops_at !== null && <Figure name="Stops at" isText value={instant(pod.stops_at, zone)} />}
      </dl>
      <p className="hint">
        Pod <code>{pod.pod_name}</code>. Its environment was set when it was created, and is never shown.
      </p>
    </Card>
  );
}
