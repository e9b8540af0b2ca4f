import { createRootRoute, createRoute, lazyRouteComponent, Outlet, redirect } from '@tanstack/react-router';
import { Problem, unreachable } from '../api/problem.js';
import { mostFound, type ListingSearch } from '../parts/listing-place.js';
import { Toasts } from '../parts/toasts.js';
import { CrashPage, MissingPage } from '../pages/fault-pages.js';
import { HomePage } from '../pages/home-page.js';
import { takeToken } from '../pages/login/link-token.js';
import { LoginPage } from '../pages/login-page.js';
import { currentSession } from '../session/session.js';
import { Shell } from '../shell/shell.js';

/**
 * A page whose script is read when it is opened. Without a network it says so; the router alone would load the console
 * again, and find nothing. A script that is gone after an upgrade makes the router do that, once. One that was dropped
 * on the way, as when a laptop changes its network, is asked for once more first: who loads the console again is logged
 * out of an API key.
 */
export const lazyPage: typeof lazyRouteComponent = (importer, name) => {
  const read: typeof importer = () =>
    importer().catch((error: unknown) => {
      throw navigator.onLine ? error : unreachable();
    });
  return lazyRouteComponent(
    () => read().catch((error: unknown) => (error instanceof Problem ? Promise.reject(error) : read())),
    name,
  );
};

export const rootRoute = createRootRoute({
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

/**
 * The state of a page as its address has it, and nothing else: the router keeps what a validator leaves out, which
 * would be a filter that is no filter.
 */
export const only =
  <Search extends object>(validate: (search: Record<string, unknown>) => Search) =>
  (search: Record<string, unknown>): Search => ({
    ...Object.fromEntries(Object.keys(search).map((name) => [name, undefined])),
    ...validate(search),
  });

const loginRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: 'sign-in',
  validateSearch: only((search): { next?: string } => {
    const next = text(search.next);
    // A path of this console, and no other origin.
    return next !== undefined && /^\/(?![/\\])/.test(next) ? { next } : {};
  }),
  component: LoginPage,
});

/** Where links of before lead, and what people type. */
const oldLoginRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: 'login',
  beforeLoad: () => {
    redirect({ to: currentSession().kind === 'none' ? '/sign-in' : '/', replace: true, throw: true });
  },
});

const linkRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: 'link',
  beforeLoad: takeToken,
  component: lazyPage(() => import('../pages/login/link-page.js'), 'LinkPage'),
});

/** What only somebody sees who is logged in. */
export const inRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: 'in',
  beforeLoad: ({ location }) => {
    const session = currentSession();
    if (session.kind !== 'none') return;
    // Who has logged out has left; whoever logs in next begins at their own home.
    const isLeft = location.href === '/' || session.ended === 'logout';
    redirect({ to: '/sign-in', search: isLeft ? {} : { next: location.href }, throw: true });
  },
  component: Shell,
});

const pageLike =
  (form: RegExp) =>
  (search: Record<string, unknown>): { page?: string } => {
    const wanted = text(search.page);
    return wanted !== undefined && form.test(wanted) ? { page: wanted } : {};
  };

/** The number of the page, in the addresses of listings, which count from 1; what is none is left out. */
export const page = pageLike(/^[1-9]\d{0,5}$/);
/** Of teams and members, which count from 0. */
export const pageFromZero = pageLike(/^\d{1,6}$/);
const sought = (search: Record<string, unknown>): { find?: string } => {
  const find = text(search.find)?.slice(0, mostFound).toWellFormed();
  return find === undefined ? {} : { find };
};
/** What is sought in a long listing, and its page. */
export const listing = (search: Record<string, unknown>): ListingSearch => ({ ...sought(search), ...page(search) });
export const listingFromZero = (search: Record<string, unknown>): ListingSearch => ({
  ...sought(search),
  ...pageFromZero(search),
});

/** Whether a listing shows what has ended too, in its address. */
export const endedToo = (search: Record<string, unknown>): { ended?: 'yes' } =>
  search.ended === 'yes' ? { ended: 'yes' } : {};

const homeRoute = createRoute({ getParentRoute: () => inRoute, path: '/', component: HomePage });
const profileRoute = createRoute({
  getParentRoute: () => inRoute,
  path: 'profile',
  component: lazyPage(() => import('../pages/profile-page.js'), 'ProfilePage'),
});
const sshKeysRoute = createRoute({
  getParentRoute: () => inRoute,
  path: 'profile/ssh-keys',
  validateSearch: only(page),
  component: lazyPage(() => import('../pages/ssh-keys/ssh-keys-page.js'), 'SshKeysPage'),
});

export const publicRoutes = [loginRoute, oldLoginRoute, linkRoute] as const;
export const ownRoutes = [homeRoute, profileRoute, sshKeysRoute] as const;
