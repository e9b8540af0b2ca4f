import { Navigate } from '@tanstack/react-router';
import { Page } from '../parts/page.js';
import { Empty } from '../parts/states.js';
import { isOperator } from '../api/access.js';
import { useUser } from '../api/user-context.js';

/** Leads to what this user is here for. */
export function HomePage() {
  const user = useUser();
  const [team] = user.teams;
  if (team) return <Navigate to="/teams/$teamId" params={{ teamId: team.id }} replace />;
  if (isOperator(user)) return <Navigate to="/operator/regions" replace />;
  return (
    <Page title="Welcome">
      <Empty title="You are in no team yet">Ask an owner or admin of a team to add {user.email} as a member.</Empty>
    </Page>
  );
}
