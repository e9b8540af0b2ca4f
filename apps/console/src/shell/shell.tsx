import { useQuery } from '@tanstack/react-query';
import { Link, Outlet, useLocation } from '@tanstack/react-router';
import { useEffect, useRef, useState, type RefObject } from 'react';
import { profileQuery } from '../api/queries.js';
import icon from '../icon.svg';
import { Button } from '../parts/button.js';
import { Failure, Skeleton } from '../parts/states.js';
import type { User } from '../api/access.js';
import { UserContext } from '../api/user-context.js';
import { CommandPalette } from './command-palette.js';
import { useCurrentTeam } from './current-team.js';
import { LogOut } from './log-out.js';
import { destinations, type Destination } from './navigation.js';
import { OwnInvitations } from './own-invitations.js';
import { TeamPicker } from './team-picker.js';
import { ThemePicker } from './theme-picker.js';

/** The frame around every page of a logged-in user. */
export function Shell() {
  const profile = useQuery(profileQuery);
  if (profile.data === undefined) {
    return (
      <main className="main">
        <Failure query={profile}>
          <Skeleton height={420} label="Loading your profile" />
        </Failure>
        {profile.errorUpdateCount > 0 && <LogOut />}
      </main>
    );
  }
  return (
    <UserContext value={profile.data}>
      <Frame user={profile.data} />
    </UserContext>
  );
}

function Frame({ user }: { user: User }) {
  const teamId = useCurrentTeam(user);
  const { pathname } = useLocation();
  const [isPaletteOpen, setPaletteOpen] = useOpenHere(pathname);
  const menuButton = useRef<HTMLButtonElement>(null);
  const menu = useMenu(pathname, menuButton);
  const main = useFocusOnNewPage(pathname);
  const links = destinations(user, teamId);
  return (
    <div className="shell" data-menu={menu.isOpen ? 'open' : 'closed'}>
      <a className="skip" href="#main">
        Skip to the content
      </a>
      <header className="top">
        <Brand />
        <div className="actions">
          <Button isSmall onPress={() => setPaletteOpen(true)}>
            Go to…
          </Button>
          <Button isSmall onPress={menu.isOpen ? menu.close : menu.open} aria-expanded={menu.isOpen} ref={menuButton}>
            Menu
          </Button>
        </div>
      </header>
      {menu.isOpen && <button type="button" className="veil" aria-label="Close the menu" onClick={menu.close} />}
      <div className="side">
        <Brand />
        {user.teams.length > 0 && <TeamPicker teams={user.teams} teamId={teamId} />}
        <Button isWide onPress={() => setPaletteOpen(true)}>
          <span className="quiet">Go to…</span> <kbd>Ctrl K</kbd>
        </Button>
        <Links links={links} />
        <div className="side-foot">
          <Link
            to="/profile"
            className="side-link"
            activeOptions={{ exact: true }}
            activeProps={{ 'aria-current': 'page' }}
          >
            <span className="clip">{user.name}</span>
          </Link>
          <a className="side-link" href="/api/docs">
            API documentation
          </a>
          <ThemePicker />
          <LogOut kind="plain" isWide />
        </div>
      </div>
      <main id="main" className="main" tabIndex={-1} ref={main}>
        <OwnInvitations user={user} />
        <Outlet />
      </main>
      <CommandPalette isOpen={isPaletteOpen} onOpenChange={setPaletteOpen} destinations={links} teams={user.teams} />
    </div>
  );
}

/** Whether something is open on the page on which it was opened: whoever goes on, or back, has closed it. */
function useOpenHere(pathname: string) {
  const [openAt, setOpenAt] = useState<string | null>(null);
  if (openAt !== null && openAt !== pathname) setOpenAt(null);
  return [openAt === pathname, (isOpen: boolean) => setOpenAt(isOpen ? pathname : null)] as const;
}

/** The sidebar of a narrow screen. Whoever closes it, by Escape too, is back at its button. */
function useMenu(pathname: string, button: RefObject<HTMLButtonElement | null>) {
  const [isOpen, setOpen] = useOpenHere(pathname);
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  useEffect(() => {
    if (!isOpen) return;
    const closeByKey = ({ key }: KeyboardEvent) => {
      if (key === 'Escape') close();
    };
    addEventListener('keydown', closeByKey);
    return () => removeEventListener('keydown', closeByKey);
  });
  return { isOpen, open: () => setOpen(true), close };
}

/** After a page change the focus is at its start, as it would be after a load. */
function useFocusOnNewPage(pathname: string) {
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) main.current?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [pathname]);
  return main;
}

function Brand() {
  return (
    <Link to="/" className="brand">
      <img src={icon} alt="" />
      Atoll
    </Link>
  );
}

function Links({ links }: { links: readonly Destination[] }) {
  const groups = Map.groupBy(links, ({ group }) => group);
  return (
    <nav aria-label="Main">
      {[...groups].map(([group, own]) => (
        <div key={group} className="side-group">
          <p>{group}</p>
          {own.map(({ name, to }) => (
            <Link
              key={to}
              to={to}
              className="side-link"
              activeOptions={{ exact: true, includeSearch: false }}
              activeProps={{ 'aria-current': 'page' }}
            >
              {name}
            </Link>
          ))}
        </div>
      ))}
    </nav>
  );
}
