import { useQueries } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Range } from '../../api/bill.js';
import { may } from '../../api/access.js';
import { reportQuery } from '../../api/billing-queries.js';
import type { Schemas } from '../../api/client.js';
import { recentMs } from '../../api/pages.js';
import { recentSubscriptionsQuery, subscriptionsQuery } from '../../api/queries.js';
import { useUser } from '../../api/user-context.js';
import { addDays, dayIn } from '../../format/zone.js';
import { Chip } from '../../parts/chip.js';
import { useNow } from '../../parts/now.js';
import { Card } from '../../parts/page.js';
import { Empty, Skeleton } from '../../parts/states.js';
import { recentBaremetalQuery } from '../baremetal/baremetal-queries.js';
import { allPodsQuery } from '../pods/pod-queries.js';
import { allVmsQuery } from '../vms/vm-queries.js';
import { allVolumesQuery } from '../volumes/volume-queries.js';

interface Matter {
  key: string;
  name: ReactNode;
  state: string;
  why: string | null;
}

const shownAtMost = 8;
/** A volume as full as this is worth a word. */
const fullShare = 0.9;

/** Problems that need attention, derived from the data of the other pages. */
export function Attention({ teamId }: { teamId: string }) {
  const user = useUser();
  const nowMs = useNow();
  const today = dayIn(nowMs, user.timezone);
  const range: Range = { from: addDays(today, -1), to: today, interval: 'daily', timezone: 'local' };
  const [subscriptions, recent, pods, vms, volumes, hosts, bill] = useQueries({
    queries: [
      subscriptionsQuery(teamId, 'last_24h'),
      recentSubscriptionsQuery(teamId),
      allPodsQuery(teamId),
      allVmsQuery(teamId),
      allVolumesQuery(teamId),
      recentBaremetalQuery(teamId),
      { ...reportQuery(teamId, range), enabled: may(user, teamId, 'readBilling') },
    ],
  });
  const all = [subscriptions, recent, pods, vms, volumes, hosts, bill];
  const live = subscriptions.data?.data ?? [];
  const liveIds = new Set(live.map(({ subscription_id }) => subscription_id));
  // The live listing is read more often, so it alone says how the others are.
  const failed = (recent.data?.data ?? []).filter(
    ({ subscription_id, status }) => status === 'failed' && !liveIds.has(subscription_id),
  );
  const matters = [
    ...[...live, ...failed].filter((one) => wantsLook(one, nowMs)).map((one) => ofSubscription(teamId, one)),
    ...(pods.data?.data ?? []).filter(({ status }) => status === 'failed').map((one) => ofPod(teamId, one)),
    ...(vms.data?.data ?? []).filter(({ status }) => status === 'failed').map((one) => ofVm(teamId, one)),
    ...(hosts.data?.data ?? []).filter((one) => hasFailed(one, nowMs)).map((one) => ofHost(teamId, one)),
    ...(volumes.data?.data ?? []).filter(isFull).map((one) => ofVolume(teamId, one)),
    ...[...new Set((bill.data?.unpriced ?? []).map(({ sku }) => sku))].map((sku) => ofUsage(teamId, sku)),
  ];
  const isUnread = all.some(({ error }) => error !== null);
  const isReading = all.some(
    ({ data, error, fetchStatus }) => data === undefined && error === null && fetchStatus !== 'idle',
  );
  return (
    <Card title="Needs attention">
      {isUnread && <p className="notice">Not everything could be read, so more may need you than is shown.</p>}
      {matters.length > 0 && <Matters matters={matters} />}
      {matters.length === 0 &&
        !isUnread &&
        (isReading ? (
          <Skeleton height={120} />
        ) : (
          <Empty title="Nothing needs you">All that the team holds is as it should be.</Empty>
        ))}
    </Card>
  );
}

function Matters({ matters }: { matters: readonly Matter[] }) {
  const more = matters.length - shownAtMost;
  return (
    <>
      <ul className="list">
        {matters.slice(0, shownAtMost).map(({ key, name, state, why }) => (
          <li key={key}>
            <span className="given">
              {name} <Chip state={state} as="failed" />
            </span>
            <span className="hint given">{why}</span>
          </li>
        ))}
      </ul>
      {more > 0 && <p className="hint">and {more} more</p>}
    </>
  );
}

function wantsLook({ status, reason, created_at }: Schemas['MeteredSubscription'], nowMs: number): boolean {
  if (status === 'failed') return Date.parse(created_at) > nowMs - recentMs;
  return status !== 'unsubscribed' && reason !== null;
}

function hasFailed({ status, created_at }: Schemas['BaremetalInstance'], nowMs: number): boolean {
  return status === 'Failed' && Date.parse(created_at) > nowMs - recentMs;
}

function isFull({ status, used_size_in_gb: used, size_in_gb: size }: Schemas['SharedVolume']): boolean {
  return status === 'failed' || (used !== null && used >= size * fullShare);
}

function ofSubscription(
  teamId: string,
  { subscription_id, name, pool_name, status, reason }: Schemas['MeteredSubscription'],
): Matter {
  const link = (
    <Link to="/teams/$teamId/subscriptions" params={{ teamId }} search={status === 'failed' ? { ended: 'yes' } : {}}>
      {name ?? pool_name}
    </Link>
  );
  return { key: `subscription ${subscription_id}`, name: link, state: status, why: reason };
}

function ofPod(teamId: string, { pod_name: podName, name, status, reason, exit_code }: Schemas['Pod']): Matter {
  const link = (
    <Link to="/teams/$teamId/pods/$podName" params={{ teamId, podName }}>
      {name}
    </Link>
  );
  return {
    key: `pod ${podName}`,
    name: link,
    state: status,
    why: reason ?? (exit_code === null ? null : `exit code ${exit_code}`),
  };
}

function ofVm(teamId: string, { instance_id, name, status, reason }: Schemas['Vm']): Matter {
  const link = (
    <Link to="/teams/$teamId/vms/$instanceId" params={{ teamId, instanceId: instance_id }}>
      {name}
    </Link>
  );
  return { key: `vm ${instance_id}`, name: link, state: status, why: reason };
}

function ofHost(teamId: string, { instance_id, name, status, error, reason }: Schemas['BaremetalInstance']): Matter {
  const link = (
    <Link to="/teams/$teamId/baremetal" params={{ teamId }} search={{ ended: 'yes' }}>
      {name}
    </Link>
  );
  return { key: `host ${instance_id}`, name: link, state: status, why: error?.message ?? reason };
}

function ofVolume(teamId: string, { volume_id, name, status, reason }: Schemas['SharedVolume']): Matter {
  const link = (
    <Link to="/teams/$teamId/volumes" params={{ teamId }}>
      {name}
    </Link>
  );
  const isFailed = status === 'failed';
  return {
    key: `volume ${volume_id}`,
    name: link,
    state: isFailed ? status : 'nearly full',
    why: isFailed ? reason : 'Make it larger, or remove files.',
  };
}

function ofUsage(teamId: string, sku: string): Matter {
  const link = (
    <Link to="/teams/$teamId/billing" params={{ teamId }}>
      {sku}
    </Link>
  );
  return {
    key: `sku ${sku}`,
    name: link,
    state: 'unpriced',
    why: 'Its usage is in no bill until the operator sets a price.',
  };
}
