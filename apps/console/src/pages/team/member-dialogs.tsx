import { useState } from 'react';
import { answerOf, api, idempotencyKey, type Schemas } from '../../api/client.js';
import { roleName } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { ActionForm, ModalBox } from '../../parts/dialogs.js';
import { Chooser, Field } from '../../parts/fields.js';
import { Secret } from '../../parts/secret.js';
import { InvitationLink } from './invitation-link.js';

type Member = Schemas['TeamMember'];
type Role = Member['role'];

const roles: readonly { value: Role; label: string; detail: string }[] = (
  [
    ['team_owner', 'everything, deletion too'],
    ['team_admin', 'members, keys, workspaces, billing'],
    ['member', 'runs things'],
    ['billing_viewer', 'reads the bill'],
    ['viewer', 'reads'],
  ] as const
).map(([value, detail]) => ({ value, label: roleName(value), detail }));

/** What was made just now: a key, and for a new member the link by which they set a password. */
function KeyShown({ member, close }: { member: Member; close: () => void }) {
  return (
    <>
      {member.api_key !== null && <Secret label={`The key of ${member.name}`} value={member.api_key} />}
      {member.invitation && <InvitationLink invitation={member.invitation} />}
      <div className="dialog-actions">
        <Button kind="primary" onPress={close}>
          Done
        </Button>
      </div>
    </>
  );
}

export function AddMember({ teamId }: { teamId: string }) {
  return (
    <ModalBox title="Add a member" trigger={<Button kind="primary">Add a member</Button>}>
      {(close) => <AddMemberForm teamId={teamId} close={close} />}
    </ModalBox>
  );
}

function AddMemberForm({ teamId, close }: { teamId: string; close: () => void }) {
  const [header] = useState(idempotencyKey);
  const [email, setEmail] = useState('');
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>('member');
  const [added, setAdded] = useState<Member | null>(null);
  if (added) return <KeyShown member={added} close={close} />;
  const add = () =>
    answerOf(api.POST('/api/team/{team_id}/members', { params: { path: { team_id: teamId }, header }, body: { email, name, role } }));
  return (
    <ActionForm submit="Add" action={add} invalidates={['team']} done="The member was added." onDone={setAdded} onCancel={close}>
      {(problem) => (
        <>
          <Field label="E-mail" type="email" value={email} onChange={setEmail} error={problem?.fields.email} isRequired />
          <Field label="Name" value={name} onChange={setName} error={problem?.fields.name} isRequired />
          <Chooser label="Role" value={role} choices={roles} onChange={setRole} />
        </>
      )}
    </ActionForm>
  );
}

export function ChangeRole({ member, teamId }: { member: Member; teamId: string }) {
  const [role, setRole] = useState(member.role);
  const path = { team_id: teamId, user_id: member.user_id };
  const change = () => answerOf(api.PUT('/api/team/{team_id}/members/{user_id}', { params: { path }, body: { role } }));
  return (
    <ModalBox title={`Role of ${member.name}`} trigger={<Button isSmall>Role</Button>}>
      {(close) => (
        <ActionForm
          submit="Change"
          action={change}
          invalidates={['team', 'profile']}
          done="The role was changed."
          onDone={close}
          onCancel={close}
        >
          {() => <Chooser label="Role" value={role} choices={roles} onChange={setRole} />}
        </ActionForm>
      )}
    </ModalBox>
  );
}

const graces = [
  { value: '0', label: 'at once' },
  { value: '3600', label: 'after an hour' },
  { value: '86400', label: 'after a day' },
  { value: '604800', label: 'after a week' },
];

export function IssueKey({ member, teamId }: { member: Member; teamId: string }) {
  const title = member.api_token ? 'Rotate the key' : 'Issue a key';
  return (
    <ModalBox title={`${title} of ${member.name}`} trigger={<Button isSmall>{member.api_token ? 'Rotate' : 'Issue a key'}</Button>}>
      {(close) => <IssueKeyForm member={member} teamId={teamId} close={close} />}
    </ModalBox>
  );
}

function IssueKeyForm({ member, teamId, close }: { member: Member; teamId: string; close: () => void }) {
  const [header] = useState(idempotencyKey);
  const [expiry, setExpiry] = useState('');
  const [addresses, setAddresses] = useState(member.ip_whitelist);
  const [grace, setGrace] = useState('0');
  const [issued, setIssued] = useState<Member | null>(null);
  if (issued) return <KeyShown member={issued} close={close} />;
  const path = { team_id: teamId, user_id: member.user_id };
  const issue = () =>
    answerOf(
      api.POST('/api/team/{team_id}/members/{user_id}/api-key', {
        params: { path, header },
        body: {
          ...(expiry !== '' && { expiry_date: `${expiry}T00:00:00Z` }),
          ...(addresses !== member.ip_whitelist && { ip_whitelist: addresses }),
          ...(member.api_token && { grace_seconds: Number(grace) }),
        },
      }),
    );
  return (
    <ActionForm submit="Make the key" action={issue} invalidates={['team']} done="A key was made." onDone={setIssued} onCancel={close}>
      {(problem) => (
        <>
          <Field
            label="Expires on (UTC)"
            type="date"
            value={expiry}
            onChange={setExpiry}
            hint="In 90 days unless given; at most a year ahead."
            error={problem?.fields.expiry_date}
          />
          <Field
            label="From addresses"
            value={addresses}
            onChange={setAddresses}
            hint="Addresses or CIDRs, with commas between them; empty allows any."
            error={problem?.fields.ip_whitelist}
          />
          {member.api_token && <Chooser label="The old key ends" value={grace} choices={graces} onChange={setGrace} />}
        </>
      )}
    </ActionForm>
  );
}
