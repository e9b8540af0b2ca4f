import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { subscriptionsQuery } from '../../api/queries.js';
import { Toggle } from '../../parts/fields.js';
import { Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { may } from '../../api/access.js';
import { useUser } from '../../api/user-context.js';
import { WindowChooser } from '../window-chooser.js';
import { SubscriptionTable } from './subscription-table.js';

export function SubscriptionsPage() {
  const { teamId } = useParams({ from: '/in/teams/$teamId' });
  const search = useSearch({ from: '/in/teams/$teamId/subscriptions' });
  const navigate = useNavigate({ from: '/teams/$teamId/subscriptions' });
  const user = useUser();
  const { window = 'last_24h' } = search;
  const subscriptions = useQuery(subscriptionsQuery(teamId, window, search.ended === 'yes'));
  return (
    <Page
      title="Subscriptions"
      lead="GPU capacity of the team. It is billed from active to unsubscribed, whether used or not."
      actions={
        <Link to="/teams/$teamId/pools" params={{ teamId }} className="button" data-kind="primary">
          Subscribe
        </Link>
      }
    >
      <div className="toolbar" role="group" aria-label="Filters">
        <WindowChooser
          value={window}
          onChange={(next) => void navigate({ search: { ...search, window: next }, replace: true })}
        />
        <Toggle
          label="Show what has ended"
          isOn={search.ended === 'yes'}
          onChange={(isOn) => {
            const { ended: _before, ...rest } = search;
            void navigate({ search: isOn ? { ...rest, ended: 'yes' } : rest, replace: true });
          }}
        />
      </div>
      <Loaded query={subscriptions} height={280}>
        {({ data }) => (
          <SubscriptionTable
            empty={<Empty title="Nothing is subscribed">See what is free under GPU pools.</Empty>}
            subscriptions={data}
            isInAddress
            window={window}
            mayChange={may(user, teamId, 'useResources')}
          />
        )}
      </Loaded>
    </Page>
  );
}
