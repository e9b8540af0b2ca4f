import { createRoute, notFound, Outlet } from '@tanstack/react-router';
import { validateBilling, validateComparison } from '../pages/billing/billing-search.js';
import { validateLogs } from '../pages/logs/log-search.js';
import { validateWindow } from '../pages/metric-window.js';
import { endedToo, inRoute, lazyPage, listing, only, page, pageFromZero } from './frame.js';

const uuid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

const teamRoute = createRoute({
  getParentRoute: () => inRoute,
  path: 'teams/$teamId',
  // What is no id is a mistyped address: each part of the page would be refused by itself.
  beforeLoad: ({ params }) => {
    if (!uuid.test(params.teamId)) notFound({ throw: true });
  },
  component: Outlet,
});
const teamOverviewRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: '/',
  component: lazyPage(() => import('../pages/team/overview-page.js'), 'OverviewPage'),
});
const billingRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'billing',
  validateSearch: only(validateBilling),
  component: lazyPage(() => import('../pages/billing/billing-page.js'), 'BillingPage'),
});
const comparisonRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'billing/compare',
  validateSearch: only(validateComparison),
  component: lazyPage(() => import('../pages/billing/comparison-page.js'), 'ComparisonPage'),
});
const teamPoolsRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'pools',
  validateSearch: only((search: Record<string, unknown>) => ({ ...listing(search), ...validateWindow(search) })),
  component: lazyPage(() => import('../pages/team/pools-page.js'), 'PoolsPage'),
});
const subscriptionsRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'subscriptions',
  validateSearch: only((search: Record<string, unknown>) => ({
    ...listing(search),
    ...validateWindow(search),
    ...endedToo(search),
  })),
  component: lazyPage(() => import('../pages/team/subscriptions-page.js'), 'SubscriptionsPage'),
});
const baremetalRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'baremetal',
  validateSearch: only((search: Record<string, unknown>) => ({ ...listing(search), ...endedToo(search) })),
  component: lazyPage(() => import('../pages/baremetal/baremetal-page.js'), 'BaremetalPage'),
});
const podsRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'pods',
  validateSearch: only((search: Record<string, unknown>) => ({ ...page(search), ...endedToo(search) })),
  component: lazyPage(() => import('../pages/pods/pods-page.js'), 'PodsPage'),
});
const podRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'pods/$podName',
  component: lazyPage(() => import('../pages/pods/pod-page.js'), 'PodPage'),
});
const terminalRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'pods/$podName/terminal',
  component: lazyPage(() => import('../pages/terminal/terminal-page.js'), 'TerminalPage'),
});
const logsRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'logs',
  validateSearch: only(validateLogs),
  component: lazyPage(() => import('../pages/logs/logs-page.js'), 'LogsPage'),
});
const volumesRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'volumes',
  validateSearch: only(page),
  component: lazyPage(() => import('../pages/volumes/volumes-page.js'), 'VolumesPage'),
});
const vmsRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'vms',
  validateSearch: only((search: Record<string, unknown>) => ({ ...page(search), ...endedToo(search) })),
  component: lazyPage(() => import('../pages/vms/vms-page.js'), 'VmsPage'),
});
const vmRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'vms/$instanceId',
  component: lazyPage(() => import('../pages/vms/vm-page.js'), 'VmPage'),
});
const membersRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'members',
  validateSearch: only(pageFromZero),
  component: lazyPage(() => import('../pages/team/members-page.js'), 'MembersPage'),
});
const settingsRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'settings',
  component: lazyPage(() => import('../pages/team/settings-page.js'), 'SettingsPage'),
});

export const teamRoutes = teamRoute.addChildren([
  teamOverviewRoute,
  billingRoute,
  comparisonRoute,
  teamPoolsRoute,
  subscriptionsRoute,
  baremetalRoute,
  podsRoute,
  podRoute,
  terminalRoute,
  logsRoute,
  vmsRoute,
  vmRoute,
  volumesRoute,
  membersRoute,
  settingsRoute,
]);
