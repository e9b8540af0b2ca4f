import { createRoute, Outlet } from '@tanstack/react-router';
import { validateWindow } from '../pages/metric-window.js';
import { validateDeadLetters, validateProcesses } from '../pages/operation/operation-search.js';
import { inRoute, lazyPage, listing, listingFromZero, only, page } from './frame.js';

const pageAndWindow = (search: Record<string, unknown>) => ({ ...page(search), ...validateWindow(search) });

const operatorRoute = createRoute({ getParentRoute: () => inRoute, path: 'operator', component: Outlet });
const regionsRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'regions',
  validateSearch: only(listing),
  component: lazyPage(() => import('../pages/operator/regions-page.js'), 'RegionsPage'),
});
const nodesRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'nodes',
  validateSearch: only(pageAndWindow),
  component: lazyPage(() => import('../pages/operator/nodes-page.js'), 'NodesPage'),
});
const nodeRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'nodes/$nodeId',
  validateSearch: only(validateWindow),
  component: lazyPage(() => import('../pages/operator/node-page.js'), 'NodePage'),
});
const allPoolsRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'pools',
  validateSearch: only(listing),
  component: lazyPage(() => import('../pages/operator/all-pools-page.js'), 'AllPoolsPage'),
});
const allSubscriptionsRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'subscriptions',
  validateSearch: only(pageAndWindow),
  component: lazyPage(() => import('../pages/operator/all-subscriptions-page.js'), 'AllSubscriptionsPage'),
});
const pricesRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'prices',
  validateSearch: only(listing),
  component: lazyPage(() => import('../pages/operator/prices-page.js'), 'PricesPage'),
});
const baremetalNodesRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'baremetal',
  validateSearch: only(page),
  component: lazyPage(() => import('../pages/operator/baremetal-nodes-page.js'), 'BaremetalNodesPage'),
});
const policiesRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'policies',
  validateSearch: only(listing),
  component: lazyPage(() => import('../pages/operator/policies-page.js'), 'PoliciesPage'),
});
const clustersRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'clusters',
  validateSearch: only(listing),
  component: lazyPage(() => import('../pages/operator/clusters-page.js'), 'ClustersPage'),
});
const flavoursRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'flavours',
  validateSearch: only(listing),
  component: lazyPage(() => import('../pages/operator/flavours-page.js'), 'FlavoursPage'),
});
const teamsRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'teams',
  validateSearch: only(listingFromZero),
  component: lazyPage(() => import('../pages/operator/teams-page.js'), 'TeamsPage'),
});
const machinesRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'machines',
  component: lazyPage(() => import('../pages/operation/machines-page.js'), 'MachinesPage'),
});
const processesRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'machines/$service/$machine',
  validateSearch: only(validateProcesses),
  component: lazyPage(() => import('../pages/operation/processes-page.js'), 'ProcessesPage'),
});
const deadLettersRoute = createRoute({
  getParentRoute: () => operatorRoute,
  path: 'dead-letters',
  validateSearch: only(validateDeadLetters),
  component: lazyPage(() => import('../pages/operation/dead-letters-page.js'), 'DeadLettersPage'),
});

export const operatorRoutes = operatorRoute.addChildren([
  machinesRoute,
  processesRoute,
  deadLettersRoute,
  regionsRoute,
  clustersRoute,
  flavoursRoute,
  nodesRoute,
  nodeRoute,
  allPoolsRoute,
  allSubscriptionsRoute,
  pricesRoute,
  baremetalNodesRoute,
  policiesRoute,
  teamsRoute,
]);
