import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Outlet, redirect } from '@tanstack/react-router';
import { Toasts } from './parts/toasts.js';
import { validateBilling, validateComparison } from './pages/billing/billing-search.js';
import { CrashPage, MissingPage } from './pages/fault-pages.js';
import { HomePage } from './pages/home-page.js';
import { takeToken } from './pages/login/link-token.js';
import { LoginPage } from './pages/login-page.js';
import { validateLogs } from './pages/logs/log-search.js';
import { currentSession } from './session/session.js';
import { Shell } from './shell/shell.js';

const rootRoute = createRootRoute({
  component: () => (
    <>
      <Outlet />
      <Toasts />
    </>
  ),
  notFoundComponent: MissingPage,
  errorComponent: CrashPage,
});

/** Values of the address are texts: a router that reads them as JSON makes numbers of ids. */
const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

const loginRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: 'sign-in',
  validateSearch: (search: Record<string, unknown>): { next?: string } => {
    const next = text(search.next);
    // A path of this console, and no other origin.
    return next !== undefined && /^\/(?![/\\])/.test(next) ? { next } : {};
  },
  component: LoginPage,
});

/** Where links of before lead, and what people type. */
const oldLoginRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: 'login',
  beforeLoad: () => {
    // eslint-disable-next-line @typescript-eslint/only-throw-error -- how this router redirects
    throw redirect({ to: currentSession().kind === 'none' ? '/sign-in' : '/', replace: true });
  },
});

const linkRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: 'link',
  beforeLoad: takeToken,
  component: lazyRouteComponent(() => import('./pages/login/link-page.js'), 'LinkPage'),
});

const inRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: 'in',
  beforeLoad: ({ location }) => {
    if (currentSession().kind === 'none') {
      // eslint-disable-next-line @typescript-eslint/only-throw-error -- how this router redirects
      throw redirect({ to: '/sign-in', search: location.href === '/' ? {} : { next: location.href } });
    }
  },
  component: Shell,
});

const page = (search: Record<string, unknown>): { page?: string } => {
  const wanted = text(search.page);
  return wanted !== undefined && /^\d{1,6}$/.test(wanted) ? { page: wanted } : {};
};

const homeRoute = createRoute({ getParentRoute: () => inRoute, path: '/', component: HomePage });
const profileRoute = createRoute({
  getParentRoute: () => inRoute,
  path: 'profile',
  component: lazyRouteComponent(() => import('./pages/profile-page.js'), 'ProfilePage'),
});
const sshKeysRoute = createRoute({
  getParentRoute: () => inRoute,
  path: 'profile/ssh-keys',
  validateSearch: page,
  component: lazyRouteComponent(() => import('./pages/ssh-keys/ssh-keys-page.js'), 'SshKeysPage'),
});

const teamRoute = createRoute({ getParentRoute: () => inRoute, path: 'teams/$teamId', component: Outlet });
const teamOverviewRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: '/',
  component: lazyRouteComponent(() => import('./pages/team/overview-page.js'), 'OverviewPage'),
});
const billingRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'billing',
  validateSearch: validateBilling,
  component: lazyRouteComponent(() => import('./pages/billing/billing-page.js'), 'BillingPage'),
});
const comparisonRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'billing/compare',
  validateSearch: validateComparison,
  component: lazyRouteComponent(() => import('./pages/billing/comparison-page.js'), 'ComparisonPage'),
});
const teamPoolsRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'pools',
  component: lazyRouteComponent(() => import('./pages/team/pools-page.js'), 'PoolsPage'),
});
const subscriptionsRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'subscriptions',
  validateSearch: (search: Record<string, unknown>): { window?: string; ended?: 'yes' } => {
    const window = text(search.window);
    return { ...(window !== undefined && { window }), ...(search.ended === 'yes' && { ended: 'yes' as const }) };
  },
  component: lazyRouteComponent(() => import('./pages/team/subscriptions-page.js'), 'SubscriptionsPage'),
});
const endedToo = (search: Record<string, unknown>): { ended?: 'yes' } => (search.ended === 'yes' ? { ended: 'yes' } : {});

const baremetalRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'baremetal',
  validateSearch: endedToo,
  component: lazyRouteComponent(() => import('./pages/baremetal/baremetal-page.js'), 'BaremetalPage'),
});
const podsRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'pods',
  validateSearch: (search: Record<string, unknown>) => ({ ...page(search), ...endedToo(search) }),
  component: lazyRouteComponent(() => import('./pages/pods/pods-page.js'), 'PodsPage'),
});
const podRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'pods/$podName',
  component: lazyRouteComponent(() => import('./pages/pods/pod-page.js'), 'PodPage'),
});
const terminalRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'pods/$podName/terminal',
  component: lazyRouteComponent(() => import('./pages/terminal/terminal-page.js'), 'TerminalPage'),
});
const logsRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'logs',
  validateSearch: validateLogs,
  component: lazyRouteComponent(() => import('./pages/logs/logs-page.js'), 'LogsPage'),
});
const volumesRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'volumes',
  validateSearch: page,
  component: lazyRouteComponent(() => import('./pages/volumes/volumes-page.js'), 'VolumesPage'),
});
const membersRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'members',
  validateSearch: page,
  component: lazyRouteComponent(() => import('./pages/team/members-page.js'), 'MembersPage'),
});
const settingsRoute = createRoute({
  getParentRoute: () => teamRoute,
  path: 'settings',
  component: lazyRouteComponent(() => import('./pages/team/settings-page.js'), 'SettingsPage'),
});

const operatorRoute = createRoute({ getParentRoute: () => inRoute, path: 'operator', component: Outlet });
const regionsRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'regions',
  component: lazyRouteComponent(() => import('./pages/operator/regions-page.js'), 'RegionsPage'),
});
const nodesRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'nodes',
  validateSearch: page,
  component: lazyRouteComponent(() => import('./pages/operator/nodes-page.js'), 'NodesPage'),
});
const nodeRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'nodes/$nodeId',
  component: lazyRouteComponent(() => import('./pages/operator/node-page.js'), 'NodePage'),
});
const allPoolsRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'pools',
  component: lazyRouteComponent(() => import('./pages/operator/all-pools-page.js'), 'AllPoolsPage'),
});
const allSubscriptionsRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'subscriptions',
  validateSearch: page,
  component: lazyRouteComponent(() => import('./pages/operator/all-subscriptions-page.js'), 'AllSubscriptionsPage'),
});
const pricesRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'prices',
  component: lazyRouteComponent(() => import('./pages/operator/prices-page.js'), 'PricesPage'),
});
const baremetalNodesRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'baremetal',
  validateSearch: page,
  component: lazyRouteComponent(() => import('./pages/operator/baremetal-nodes-page.js'), 'BaremetalNodesPage'),
});
const policiesRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'policies',
  component: lazyRouteComponent(() => import('./pages/operator/policies-page.js'), 'PoliciesPage'),
});
const teamsRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'teams',
  validateSearch: page,
  component: lazyRouteComponent(() => import('./pages/operator/teams-page.js'), 'TeamsPage'),
});

const routeTree = rootRoute.addChildren([
  loginRoute,
  oldLoginRoute,
  linkRoute,
  inRoute.addChildren([
    homeRoute,
    profileRoute,
    sshKeysRoute,
    teamRoute.addChildren([
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
      volumesRoute,
      membersRoute,
      settingsRoute,
    ]),
    operatorRoute.addChildren([
      regionsRoute,
      nodesRoute,
      nodeRoute,
      allPoolsRoute,
      allSubscriptionsRoute,
      pricesRoute,
      baremetalNodesRoute,
      policiesRoute,
      teamsRoute,
    ]),
  ]),
]);

export const router = createRouter({
  routeTree,
  defaultPreload: 'intent',
  scrollRestoration: true,
  parseSearch: (search) => Object.fromEntries(new URLSearchParams(search)),
  stringifySearch: (search) => {
    const entries = Object.entries(search).filter((entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1] !== '');
    const written = new URLSearchParams(entries).toString();
    return written && `?${written}`;
  },
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
