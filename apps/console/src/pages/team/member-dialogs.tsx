import { answerOf, api, type Schemas } from '../../api/client.js';
import { may } from '../../api/access.js';
import { useUser } from '../../api/user-context.js';
import { roleName } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { Chooser, Field } from '../../parts/fields.js';
import { FormDialog, Made } from '../../parts/form-dialog.js';
import { Secret } from '../../parts/secret.js';
import { replaceKey } from '../../session/session.js';
import { InvitationLink } from './invitation-link.js';

type Member = Schemas['TeamMember'];
type Role = Member['role'];

const allRoles: readonly { value: Role; label: string; detail: string }[] = (
  [
    ['team_owner', 'everything, deletion too'],
    ['team_admin', 'members, keys, workspaces, billing'],
    ['member', 'runs things'],
    ['billing_viewer', 'reads the bill'],
    ['viewer', 'reads'],
  ] as const
).map(([value, detail]) => ({ value, label: roleName(value), detail }));

/** Those that the user may give in this team. */
function useRoles(teamId: string): typeof allRoles {
  const mayManageOwners = may(useUser(), teamId, 'manageOwners');
  return allRoles.filter(({ value }) => value !== 'team_owner' || mayManageOwners);
}

/** Secrets of a created member: the API key, and for a new user the link to set a password. */
export function KeyShown({ member }: { member: Member }) {
  return (
    <Made>
      {member.api_key !== null && (
        <Secret
          label={`The key of ${member.name}`}
          value={member.api_key}
          another="Rotate the key, in Members and keys, to get another."
        />
      )}
      {member.invitation && <InvitationLink invitation={member.invitation} />}
    </Made>
  );
}

const nobody: { email: string; name: string; role: Role } = { email: '', name: '', role: 'member' };

export function AddMember({ teamId }: { teamId: string }) {
  const roles = useRoles(teamId);
  return (
    <FormDialog
      title="Add a member"
      trigger={<Button kind="primary">Add a member</Button>}
      initial={nobody}
      keptAs="new member"
      submit="Add"
      action={(body, header) =>
        answerOf(api.POST('/api/team/{team_id}/members', { params: { path: { team_id: teamId }, header }, body }))
      }
      invalidates={['team']}
      done="The member was added."
      shown={(member) => <KeyShown member={member} />}
    >
      {({ field }) => (
        <>
          <Field label="E-mail" type="email" {...field('email')} isRequired />
          <Field label="Name" {...field('name')} isRequired />
          <Chooser label="Role" {...field('role')} choices={roles} />
        </>
      )}
    </FormDialog>
  );
}

export function ChangeRole({ member: { user_id, name, role }, teamId }: { member: Member; teamId: string }) {
  const path = { team_id: teamId, user_id };
  const roles = useRoles(teamId);
  return (
    <FormDialog
      title={`Role of ${name}`}
      trigger={<Button isSmall>Role</Button>}
      initial={{ role }}
      submit="Change"
      action={(body) => answerOf(api.PUT('/api/team/{team_id}/members/{user_id}', { params: { path }, body }))}
      invalidates={['team', 'profile']}
      done="The role was changed."
    >
      {({ field }) => <Chooser label="Role" {...field('role')} choices={roles} />}
    </FormDialog>
  );
}

const graces = [
  { value: '0', label: 'at once' },
  { value: '3600', label: 'after an hour' },
  { value: '86400', label: 'after a day' },
  { value: '604800', label: 'after a week' },
];

export function IssueKey({ member, teamId }: { member: Member; teamId: string }) {
  const user = useUser();
  const { user_id, name, api_token: hasKey, ip_whitelist } = member;
  const path = { team_id: teamId, user_id };
  return (
    <FormDialog
      title={`${hasKey ? 'Rotate the key' : 'Issue a key'} of ${name}`}
      trigger={<Button isSmall>{hasKey ? 'Rotate' : 'Issue a key'}</Button>}
      initial={{ expiry: '', addresses: ip_whitelist, grace: '0' }}
      submit="Make the key"
      action={({ expiry, addresses, grace }, header, touched) => {
        const body = {
          ...(expiry !== '' && { expiry_date: `${expiry}T00:00:00Z` }),
          ...(touched.has('addresses') && { ip_whitelist: addresses }),
          ...(hasKey && { grace_seconds: Number(grace) }),
        };
        const issue = () =>
          answerOf(api.POST('/api/team/{team_id}/members/{user_id}/api-key', { params: { path, header }, body }));
        // Who is logged in by a key of one team has no second factors there.
        const isOfTab = user_id === user.id && user.second_factor === null;
        return isOfTab ? replaceKey(issue) : issue();
      }}
      invalidates={['team']}
      done="A key was made."
      shown={(issued) => <KeyShown member={issued} />}
    >
      {({ field }) => (
        <>
          <Field
            label="Expires on (UTC)"
            type="date"
            {...field('expiry', 'expiry_date')}
            hint="90 days if left empty; at most a year."
          />
          <Field
            label="From addresses"
            {...field('addresses', 'ip_whitelist')}
            hint="Addresses or CIDRs, separated by commas; empty allows any."
          />
          {hasKey && <Chooser label="The old key ends" {...field('grace')} choices={graces} />}
        </>
      )}
    </FormDialog>
  );
}
