import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { instant } from '../../format/format.js';
import { Chip } from '../../parts/chip.js';
import { Toggle } from '../../parts/fields.js';
import { Paged } from '../../parts/paged.js';
import { Page } from '../../parts/page.js';
import { Empty } from '../../parts/states.js';
import { Table } from '../../parts/table.js';
import { may } from '../../api/access.js';
import { useUser } from '../../api/user-context.js';
import { CreatePod } from './create-pod.js';
import { PodActions } from './pod-actions.js';
import { podsQuery } from './pod-queries.js';

export function PodsPage() {
  const { teamId } = useParams({ from: '/in/teams/$teamId' });
  const search = useSearch({ from: '/in/teams/$teamId/pods' });
  const navigate = useNavigate({ from: '/teams/$teamId/pods' });
  const user = useUser();
  const mayUse = may(user, teamId, 'useResources');
  const { page = '1' } = search;
  const pods = useQuery(podsQuery(teamId, Number(page), search.ended === 'yes'));
  return (
    <Page
      title="Pods"
      lead="Containers on GPU slices of the team's subscriptions."
      actions={mayUse && <CreatePod teamId={teamId} />}
    >
      <Toggle
        label="Show what has ended"
        isOn={search.ended === 'yes'}
        onChange={(isOn) => void navigate({ search: isOn ? { ended: 'yes' } : {}, replace: true })}
      />
      <Paged
        label="Pods"
        query={pods}
        page={page}
        first={1}
        height={280}
        onTurn={(next) => void navigate({ search: { ...search, page: next } })}
      >
        {({ data, pagination }) => (
          <Table
            label="Pods"
            rows={data}
            keyOf={({ pod_name }) => pod_name}
            empty={
              pagination.total === 0 && (
                <Empty title="No pod runs here">Create one from an image, on a subscription of the team.</Empty>
              )
            }
            columns={[
              {
                title: 'Pod',
                isHead: true,
                cell: ({ name, pod_name, image, deleted_at }) => (
                  <span className="given">
                    {deleted_at ? (
                      name
                    ) : (
                      <Link to="/teams/$teamId/pods/$podName" params={{ teamId, podName: pod_name }}>
                        {name}
                      </Link>
                    )}
                    <br />
                    <span className="hint">{image}</span>
                  </span>
                ),
              },
              {
                title: 'State',
                cell: ({ status, reason, deleted_at }) => (
                  <>
                    <Chip state={deleted_at ? 'deleted' : status} />
                    {reason !== null && <p className="hint given">{reason}</p>}
                  </>
                ),
              },
              { title: 'On', isNumber: true, cell: ({ vgpus, profile }) => `${vgpus} × ${profile}` },
              {
                title: 'Started',
                isWhole: true,
                cell: ({ started_at }) => (started_at === null ? '–' : instant(started_at, user.timezone)),
              },
              ...(mayUse ? [{ title: '', cell: (pod: (typeof data)[number]) => <PodActions pod={pod} /> }] : []),
            ]}
          />
        )}
      </Paged>
    </Page>
  );
}
