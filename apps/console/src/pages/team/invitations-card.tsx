import { queryOptions, useQuery } from '@tanstack/react-query';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { instant, roleName } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { Ask, FormDialog, Made } from '../../parts/form-dialog.js';
import { Card } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Table } from '../../parts/table.js';
import { useUser } from '../../api/user-context.js';
import { InvitationLink } from './invitation-link.js';

type Invitation = Schemas['Invitation'];

// A key of its own under `team`: whatever changes members changes it.
const invitationsQuery = (team_id: string) =>
  queryOptions({
    queryKey: ['team', team_id, 'invitations'],
    queryFn: () => answerOf(api.GET('/api/team/{team_id}/invitations', { params: { path: { team_id } } })),
  });

/** Pending invitations. */
export function InvitationsCard({ teamId }: { teamId: string }) {
  const { timezone } = useUser();
  const invitations = useQuery(invitationsQuery(teamId));
  return (
    <Card title="Invitations">
      <Loaded query={invitations} height={80}>
        {({ data }) => (
          <Table
            label="Invitations"
            rows={data}
            keyOf={({ id }) => id}
            findBy={({ name, email }) => [name, email]}
            empty={<Empty title="Nobody is invited">Who is added stands here until they join.</Empty>}
            columns={[
              {
                title: 'Person',
                isHead: true,
                cell: ({ name, email }) => (
                  <span className="given">
                    {name}
                    <br />
                    <span className="hint">{email}</span>
                  </span>
                ),
              },
              { title: 'Role', cell: ({ role }) => roleName(role) },
              {
                title: 'Link expires',
                isWhole: true,
                cell: ({ expires_at }) => (expires_at === null ? 'no link' : instant(expires_at, timezone)),
              },
              { title: '', cell: (invitation) => <Actions invitation={invitation} teamId={teamId} /> },
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}

function Actions({ invitation: { id, name }, teamId }: { invitation: Invitation; teamId: string }) {
  const params = { path: { team_id: teamId, invitation_id: id } };
  return (
    <div className="actions">
      <FormDialog
        title={`Invite ${name} again`}
        trigger={<Button isSmall>Resend</Button>}
        initial={{}}
        submit="Send a new link"
        action={() => answerOf(api.POST('/api/team/{team_id}/invitations/{invitation_id}/resend', { params }))}
        invalidates={['team']}
        shown={(sent) => (
          <Made>
            <InvitationLink invitation={sent} />
          </Made>
        )}
      >
        {() => <p>A new link is created; the old one stops working.</p>}
      </FormDialog>
      <Ask
        title={`Revoke the invitation of ${name}`}
        question={<p>Its link stops working, and the person does not join the team.</p>}
        submit="Revoke"
        action={() => answerOf(api.DELETE('/api/team/{team_id}/invitations/{invitation_id}', { params }))}
        invalidates={['team']}
        done="The invitation was revoked."
      />
    </div>
  );
}
