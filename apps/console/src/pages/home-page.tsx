import { useQuery } from '@tanstack/react-query';
import { Navigate } from '@tanstack/react-router';
import { Page } from '../parts/page.js';
import { Empty, Skeleton } from '../parts/states.js';
import { isOperator } from '../api/access.js';
import { profileQuery } from '../api/queries.js';
import { useUser } from '../api/user-context.js';
import { useCurrentTeam } from '../shell/current-team.js';
import { CreateOwnTeam } from './create-own-team.js';

/** Leads to what this user is here for; after a team was left or deleted, once it is known which are left. */
export function HomePage() {
  const user = useUser();
  const { isFetching } = useQuery(profileQuery);
  const teamId = useCurrentTeam(user);
  if (teamId !== undefined && isFetching) return <Skeleton />;
  if (teamId !== undefined) return <Navigate to="/teams/$teamId" params={{ teamId }} replace />;
  if (isOperator(user)) return <Navigate to="/operator/regions" replace />;
  return (
    <Page title="Welcome">
      <Empty title="You are in no team yet">
        Create one, or ask an owner or admin of a team to add {user.email} as a member.
      </Empty>
      <div className="actions">
        <CreateOwnTeam />
      </div>
    </Page>
  );
}
