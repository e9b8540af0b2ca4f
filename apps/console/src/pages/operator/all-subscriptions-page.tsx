import { useQueries, useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { allSubscriptionsQuery, teamQuery } from '../../api/queries.js';
import { Page } from '../../parts/page.js';
import { Empty } from '../../parts/states.js';
import { Paged } from '../../parts/paged.js';
import { WindowChooser } from '../window-chooser.js';
import { SubscriptionTable } from '../team/subscription-table.js';

export function AllSubscriptionsPage() {
  const search = useSearch({ from: '/in/operator/subscriptions' });
  const { page = '1', window = 'last_24h' } = search;
  const navigate = useNavigate({ from: '/operator/subscriptions' });
  const subscriptions = useQuery(allSubscriptionsQuery(Number(page), window));
  const ids = [...new Set(subscriptions.data?.data.map(({ team_id }) => team_id))];
  const teams = useQueries({ queries: ids.map((id) => ({ ...teamQuery(id), refetchInterval: false as const })) });
  // A deleted team has only its id.
  const teamName = (id: string) => teams[ids.indexOf(id)]?.data?.name ?? id;
  return (
    <Page title="All subscriptions" lead="GPU capacity of every team, and its utilization.">
      <div className="toolbar" role="group" aria-label="Filters">
        <WindowChooser
          value={window}
          onChange={(next) => void navigate({ search: { ...search, window: next }, replace: true })}
        />
      </div>
      <Paged
        label="Subscriptions"
        query={subscriptions}
        page={page}
        first={1}
        height={320}
        onTurn={(next) => void navigate({ search: { ...search, page: next } })}
      >
        {({ data, pagination }) => (
          <SubscriptionTable
            empty={pagination.total === 0 && <Empty title="No team holds anything" />}
            subscriptions={data}
            window={window}
            mayChange
            before={[
              {
                title: 'Team',
                cell: ({ team_id }) => (
                  <Link to="/teams/$teamId" params={{ teamId: team_id }} className="clip">
                    {teamName(team_id)}
                  </Link>
                ),
              },
            ]}
          />
        )}
      </Paged>
    </Page>
  );
}
