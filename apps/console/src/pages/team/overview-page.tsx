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
import { Attention } from './attention.js';
import { CostCard } from './cost-card.js';
import { Utilization } from './utilization.js';

export function OverviewPage() {
  const { teamId } = useParams({ from: '/in/teams/$teamId' });
  const user = useUser();
  const team = useQuery(teamQuery(teamId));
  return (
    <Page title={team.data?.name ?? 'Overview'} lead={team.data?.description}>
      {team.data?.is_suspended && (
        <div className="notice" role="status">
          <strong>This team is suspended.</strong>
          <p>It may read, stop, unsubscribe and delete. Running resources continue and are billed.</p>
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
              <Figure name="vGPUs" value={quantity(total.vgpus)} hint={`on ${quantity(total.gpus)} GPUs`} />
              <Figure name="Running pods" value={quantity(total.pods_in_use)} hint={`of ${quantity(total.pods)}`} />
              <Figure name="VMs" value={quantity(total.vms)} hint={`${quantity(total.vms_in_use)} running`} />
              <Figure name="Bare-metal hosts" value={quantity(total.baremetal_instances)} />
              <Figure name="Shared storage" value={gigabytes(total.storage_in_gb)} />
              <Figure name="Regions" value={regions.length} />
            </dl>
          </>
        )}
      </Loaded>
    </Card>
  );
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
      <Utilization id={subscription.subscription_id} name={name ?? pool_name} window="last_24h" />
      <span className="use">
        <span className="hint">{use === null ? 'no samples' : percent(use)}</span>
        <span className="meter" aria-hidden="true">
          <span style={{ width: `${use ?? 0}%` }} />
        </span>
      </span>
    </li>
  );
}
