import { useMutation } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { useId, useState } from 'react';
import { answerOf, api } from '../api/client.js';
import type { User } from '../api/access.js';
import { asProblem } from '../api/problem.js';
import { roleName } from '../format/format.js';
import { Button, RowHead } from '../parts/button.js';
import { readAgain } from '../parts/dialogs.js';
import { Ask } from '../parts/form-dialog.js';
import { ProblemNote } from '../parts/states.js';
import { say } from '../parts/toasts.js';

/** The page itself is to be in view below them. */
const mostUnfolded = 3;

/**
 * Teams that have invited this user, who came by another way than the link of the invitation. A key to one team accepts
 * nothing.
 */
export function OwnInvitations({ user }: { user: User }) {
  const [isUnfolded, setUnfolded] = useState(false);
  if (user.second_factor === null) return null;
  const invitations = user.teams
    .filter(({ status }) => status === 'invited')
    .map((team) => <OwnInvitation key={team.id} team={team} userId={user.id} />);
  const folded = invitations.slice(mostUnfolded);
  return (
    <>
      {invitations.slice(0, mostUnfolded)}
      {folded.length > 0 && (
        <div className="actions">
          <Button isSmall aria-expanded={isUnfolded} onPress={() => setUnfolded(!isUnfolded)}>
            {folded.length === 1 ? '1 more invitation' : `${folded.length} more invitations`}
          </Button>
        </div>
      )}
      {isUnfolded && folded}
    </>
  );
}

function OwnInvitation({ team: { id, name, role }, userId }: { team: User['teams'][number]; userId: string }) {
  const { teamId } = useParams({ strict: false });
  const navigate = useNavigate();
  const nameId = useId();
  const accepting = useMutation({
    mutationFn: () =>
      answerOf(api.POST('/api/team/{team_id}/invitations/accept', { params: { path: { team_id: id } } })),
    onSuccess: async () => {
      say(`You have joined ${name}.`);
      await readAgain(['profile', 'team']);
    },
  });
  return (
    <section className="notice" aria-label={`Invitation to ${name}`}>
      <strong className="given">
        <span id={nameId}>{name}</span> has invited you.
      </strong>
      <p>Your role is {roleName(role)}. Your SSH keys open its pods once you have accepted.</p>
      {accepting.error !== null && <ProblemNote problem={asProblem(accepting.error)} />}
      <RowHead value={nameId}>
        <div className="actions">
          <Button kind="primary" isSmall isBusy={accepting.isPending} onPress={() => accepting.mutate()}>
            Accept the invitation
          </Button>
          <Ask
            title={`Decline the invitation to ${name}`}
            question={
              <p>
                You join the team only if it invites you again. Its link stops working, and your key to the team ends.
              </p>
            }
            trigger={<Button isSmall>Decline</Button>}
            submit="Decline"
            action={() =>
              answerOf(
                api.DELETE('/api/team/{team_id}/members/{user_id}', {
                  params: { path: { team_id: id, user_id: userId } },
                }),
              )
            }
            invalidates={['profile', 'team']}
            done={`You have declined the invitation to ${name}.`}
            onDone={() => {
              if (teamId === id) void navigate({ to: '/' });
            }}
          />
        </div>
      </RowHead>
    </section>
  );
}
