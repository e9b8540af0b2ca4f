import { useMutation } from '@tanstack/react-query';
import { answerOf, api } from '../api/client.js';
import type { User } from '../api/access.js';
import { asProblem } from '../api/problem.js';
import { roleName } from '../format/format.js';
import { Button } from '../parts/button.js';
import { readAgain } from '../parts/dialogs.js';
import { ProblemNote } from '../parts/states.js';
import { say } from '../parts/toasts.js';

/** Teams that have invited this user, who came by another way than the link of the invitation. A key to one team accepts nothing. */
export function OwnInvitations({ user }: { user: User }) {
  if (user.second_factor === null) return null;
  return user.teams.filter(({ status }) => status === 'invited').map((team) => <OwnInvitation key={team.id} team={team} />);
}

function OwnInvitation({ team: { id, name, role } }: { team: User['teams'][number] }) {
  const accepting = useMutation({
    mutationFn: () => answerOf(api.POST('/api/team/{team_id}/invitations/accept', { params: { path: { team_id: id } } })),
    onSuccess: async () => {
      say(`You have joined ${name}.`);
      await readAgain(['profile', 'team']);
    },
  });
  return (
    <section className="notice" aria-label={`Invitation to ${name}`}>
      <strong className="given">{name} has invited you.</strong>
      <p>Your role is {roleName(role)}. Your SSH keys open its pods once you have accepted.</p>
      {accepting.error !== null && <ProblemNote problem={asProblem(accepting.error)} />}
      <div className="actions">
        <Button kind="primary" isSmall isBusy={accepting.isPending} onPress={() => accepting.mutate()}>
          Accept the invitation
        </Button>
      </div>
    </section>
  );
}
