import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { membersQuery } from '../../api/queries.js';
import { day, roleName } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { Chip } from '../../parts/chip.js';
import { Ask } from '../../parts/form-dialog.js';
import { Paged } from '../../parts/paged.js';
import { Page } from '../../parts/page.js';
import { Table, type Column } from '../../parts/table.js';
import { may } from '../../api/access.js';
import { useUser } from '../../api/user-context.js';
import { InvitationsCard } from './invitations-card.js';
import { AddMember, ChangeRole, IssueKey } from './member-dialogs.js';

type Member = Schemas['TeamMember'];

export function MembersPage() {
  const { teamId } = useParams({ from: '/in/teams/$teamId' });
  const { page = '0' } = useSearch({ from: '/in/teams/$teamId/members' });
  const navigate = useNavigate({ from: '/teams/$teamId/members' });
  const user = useUser();
  const members = useQuery(membersQuery(teamId, Number(page)));
  const mayManage = may(user, teamId, 'manageTeam');
  return (
    <Page
      title="Members and keys"
      lead="Members of the team, with role and API key."
      actions={mayManage && <AddMember teamId={teamId} />}
    >
      <Paged
        label="Members"
        query={members}
        page={page}
        first={0}
        height={280}
        onTurn={(next) => void navigate({ search: { page: next } })}
      >
        {({ data }) => (
          <Table
            label="Members"
            rows={data}
            keyOf={({ user_id }) => user_id}
            columns={columns(teamId, user.timezone)}
          />
        )}
      </Paged>
      {mayManage && <InvitationsCard teamId={teamId} />}
    </Page>
  );
}

function columns(teamId: string, zone: string): Column<Member>[] {
  return [
    {
      title: 'Member',
      isHead: true,
      cell: ({ name, email }) => (
        <span className="given">
          {name}
          <br />
          <span className="hint">{email}</span>
        </span>
      ),
    },
    {
      title: 'Role',
      cell: ({ role, status }) => (
        <>
          {roleName(role)} {status === 'invited' && <Chip state="invited" />}
        </>
      ),
    },
    {
      title: 'Key',
      cell: ({ api_key }) => (api_key === null ? <span className="quiet">none</span> : <code>{api_key}</code>),
    },
    { title: 'Expires', cell: ({ expiry_date }) => (expiry_date === null ? '–' : day(expiry_date, zone)) },
    {
      title: 'From addresses',
      cell: ({ ip_whitelist, api_token }) =>
        api_token ? (
          <span className="given">{ip_whitelist.replaceAll(',', ', ') || 'any'}</span>
        ) : (
          <span className="quiet">–</span>
        ),
    },
    { title: '', cell: (member, now) => <MemberActions member={member} now={now} teamId={teamId} /> },
  ];
}

function MemberActions({ member, now, teamId }: { member: Member; now: Member; teamId: string }) {
  const path = { team_id: teamId, user_id: member.user_id };
  const user = useUser();
  const navigate = useNavigate();
  const isSelf = member.user_id === user.id;
  const mayChange = may(user, teamId, member.role === 'team_owner' ? 'manageOwners' : 'manageTeam');
  if (!mayChange && !isSelf) return null;
  return (
    <div className="actions">
      <IssueKey member={now} teamId={teamId} />
      {member.api_token && (
        <Ask
          title="Revoke the key"
          question={<p className="given">Programs that use the key of {member.name} are refused from now on.</p>}
          trigger={<Button isSmall>Revoke</Button>}
          submit="Revoke the key"
          action={() => answerOf(api.DELETE('/api/team/{team_id}/members/{user_id}/api-key', { params: { path } }))}
          invalidates={['team']}
          done="The key was revoked."
        />
      )}
      {mayChange && <ChangeRole member={member} teamId={teamId} />}
      <Ask
        title={isSelf ? 'Leave the team' : 'Remove from the team'}
        question={
          <p className="given">
            {isSelf ? 'You' : member.name} can no longer see the team, and the key to it ends. What runs goes on.
          </p>
        }
        submit={isSelf ? 'Leave' : 'Remove'}
        action={() => answerOf(api.DELETE('/api/team/{team_id}/members/{user_id}', { params: { path } }))}
        invalidates={['team', 'profile']}
        done={isSelf ? 'You left the team.' : 'The member was removed.'}
        onDone={() => {
          if (isSelf) void navigate({ to: '/' });
        }}
      />
    </div>
  );
}
