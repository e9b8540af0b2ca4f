import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { overviewQuery, subscriptionsQuery, teamQuery } from '../../api/queries.js';
import type { Schemas } from '../../api/client.js';
import { gigabytes, percent, quantity } from '../../format/format.js';
import { Chip } from '../../parts/chip.js';
import { Card, Figure, Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { may } from '../../api/access.js';
import { useUser } from '../../api/user-context.js';
import { CostCard } from './cost-card.js';

export function OverviewPage() {
  const { teamId } = useParams({ from: '/in/teams/$teamId' });
  const user = useUser();
  const team = useQuery(teamQuery(teamId));
  return (
    <Page title={team.data?.name ?? 'Overview'} lead={team.data?.description}>
      {team.data?.is_suspended && (
        <div className="notice" role="status">
          <strong>This team is suspended.</strong>
          <p>It may read, stop, unsubscribe and delete. What runs goes on and is billed.</p>
        </div>
      )}
      {may(user, teamId, 'readBilling') && <CostCard teamId={teamId} />}
      <div className="columns">
        <Holdings teamId={teamId} />
        <Attention teamId={teamId} />
      </div>
      <Subscriptions teamId={teamId} />
    </Page>
  );
}

function Holdings({ teamId }: { teamId: string }) {
  const overview = useQuery(overviewQuery(teamId));
  return (
    <Card title="What the team holds">
      <Loaded query={overview} height={120}>
        {({ total, regions }) => (
          <>
            <dl className="figures">
              <Figure name="vGPUs" value={quantity(total.vgpus)} />
              <Figure name="GPUs they lie on" value={quantity(total.gpus)} />
              <Figure name="Regions" value={regions.length} />
            </dl>
          </>
        )}
      </Loaded>
    </Card>
  );
}

/** What somebody has to see to; taken from what the pages show, so nothing here is news elsewhere. */
function Attention({ teamId }: { teamId: string }) {
  const subscriptions = useQuery(subscriptionsQuery(teamId, 'last_24h', true));
  return (
    <Card title="Needs attention">
      <Loaded query={subscriptions} height={120}>
        {({ data }) => {
          const wanting = data.filter(needsAttention).slice(-5).toReversed();
          if (wanting.length === 0) return <Empty title="Nothing needs you">All subscriptions are as they should be.</Empty>;
          return (
            <ul className="list">
              {wanting.map((subscription) => (
                <li key={subscription.subscription_id}>
                  <span className="given">
                    {subscription.name ?? subscription.pool_name} <Chip state={subscription.status} />
                  </span>
                  <span className="hint given">{subscription.reason}</span>
                </li>
              ))}
            </ul>
          );
        }}
      </Loaded>
    </Card>
  );
}

function needsAttention({ status, reason }: Schemas['MeteredSubscription']): boolean {
  return status === 'failed' || (status !== 'unsubscribed' && reason !== null);
}

function Subscriptions({ teamId }: { teamId: string }) {
  const subscriptions = useQuery(subscriptionsQuery(teamId, 'last_24h'));
  return (
    <Card
      title="GPU use in the last 24 hours"
      actions={
        <Link to="/teams/$teamId/subscriptions" params={{ teamId }} className="button" data-small="true">
          All subscriptions
        </Link>
      }
    >
      <Loaded query={subscriptions} height={140}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty
              title="No GPU is subscribed"
              action={
                <Link to="/teams/$teamId/pools" params={{ teamId }} className="button" data-kind="primary">
                  See what is free
                </Link>
              }
            >
              Subscribe to slices of a GPU pool to run something on them.
            </Empty>
          ) : (
            <ul className="list">
              {data.slice(0, 6).map((subscription) => (
                <UseRow key={subscription.subscription_id} subscription={subscription} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Card>
  );
}

function UseRow({ subscription }: { subscription: Schemas['MeteredSubscription'] }) {
  const { name, pool_name, vgpus_allocated, profile, v_ram_gb, metrics, metrics_status, status } = subscription;
  const use = metrics_status === 'no_data' ? null : metrics.gpu_utilization;
  return (
    <li>
      <span className="given">
        <strong>{name ?? pool_name}</strong> <Chip state={status} />
        <br />
        <span className="hint">
          {vgpus_allocated} × {profile}, {gigabytes(v_ram_gb)} each
        </span>
      </span>
      <span className="use">
        <span className="hint">{use === null ? 'no samples' : percent(use)}</span>
        <span className="meter" aria-hidden="true">
          <span style={{ width: `${use ?? 0}%` }} />
        </span>
      </span>
    </li>
  );
}
