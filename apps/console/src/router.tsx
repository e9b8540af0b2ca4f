import { createRouter } from '@tanstack/react-router';
import { inRoute, ownRoutes, publicRoutes, rootRoute } from './routes/frame.js';
import { operatorRoutes } from './routes/operator-routes.js';
import { teamRoutes } from './routes/team-routes.js';

const routeTree = rootRoute.addChildren([
  ...publicRoutes,
  inRoute.addChildren([...ownRoutes, teamRoutes, operatorRoutes]),
]);

export const router = createRouter({
  routeTree,
  defaultPreload: 'intent',
  scrollRestoration: true,
  // What is open on the page of one team, pod or machine is not about that of another.
  defaultRemountDeps: ({ params }) => params,
  parseSearch: (search) => Object.fromEntries(new URLSearchParams(search)),
  stringifySearch: (search) => {
    const entries = Object.entries(search).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1] !== '',
    );
    const written = new URLSearchParams(entries).toString();
    return written && `?${written}`;
  },
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
