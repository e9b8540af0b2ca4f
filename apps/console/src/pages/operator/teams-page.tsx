import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { answerOf, api, idempotencyKey, type Schemas } from '../../api/client.js';
import { teamsQuery } from '../../api/queries.js';
import { day } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { Chip } from '../../parts/chip.js';
import { Act, ActionForm, Ask, ModalBox } from '../../parts/dialogs.js';
import { Field } from '../../parts/fields.js';
import { Page } from '../../parts/page.js';
import { Secret } from '../../parts/secret.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Pager, Table } from '../../parts/table.js';
import { useUser } from '../../api/user-context.js';

type Team = Schemas['Team'];

export function TeamsPage() {
  const { page = '0' } = useSearch({ from: '/in/operator/teams' });
  const navigate = useNavigate({ from: '/operator/teams' });
  const { timezone } = useUser();
  const teams = useQuery(teamsQuery(Number(page)));
  return (
    <Page
      title="Teams"
      lead="Everybody who rents here. A suspended team takes nothing new; what it runs goes on."
      actions={
        <ModalBox title="Create a team" trigger={<Button kind="primary">Create a team</Button>}>
          {(close) => <CreateTeam close={close} />}
        </ModalBox>
      }
    >
      <Loaded query={teams} height={320}>
        {({ data, pagination }) =>
          data.length === 0 ? (
            <Empty title="There is no team yet">Create one and name its owner.</Empty>
          ) : (
            <div>
              <Table
                label="Teams"
                rows={data}
                keyOf={({ id }) => id}
                columns={[
                  {
                    title: 'Team',
                    isHead: true,
                    cell: ({ id, name, description }) => (
                      <span className="given">
                        <Link to="/teams/$teamId" params={{ teamId: id }}>
                          {name}
                        </Link>
                        <br />
                        <span className="hint">{description}</span>
                      </span>
                    ),
                  },
                  { title: 'State', cell: ({ is_suspended, status }) => <Chip state={is_suspended ? 'suspended' : status} /> },
                  { title: 'Members', isNumber: true, cell: ({ members }) => members.length },
                  { title: 'Policy', cell: ({ policy_info }) => <span className="given">{policy_info.policy_name}</span> },
                  { title: 'Since', cell: ({ created_at }) => day(created_at, timezone) },
                  { title: '', cell: (team) => <TeamActions team={team} /> },
                ]}
              />
              <Pager {...pagination} first={0} onChange={(next) => void navigate({ search: { page: String(next) } })} />
            </div>
          )
        }
      </Loaded>
    </Page>
  );
}

function TeamActions({ team }: { team: Team }) {
  const params = { params: { path: { team_id: team.id } } };
  const invalidates = ['teams', 'team'];
  if (team.is_suspended) {
    return (
      <Act
        label="Unsuspend"
        action={() => answerOf(api.POST('/api/team/{team_id}/unsuspend', params))}
        invalidates={invalidates}
        done={`${team.name} may take things again.`}
      />
    );
  }
  return (
    <Ask
      title={`Suspend ${team.name}`}
      question={<p>The team may read, stop, unsubscribe and delete; nothing else. What runs goes on and is billed.</p>}
      trigger={
        <Button isSmall kind="danger">
          Suspend
        </Button>
      }
      submit="Suspend"
      action={() => answerOf(api.POST('/api/team/{team_id}/suspend', params))}
      invalidates={invalidates}
      done="The team was suspended."
    />
  );
}

function CreateTeam({ close }: { close: () => void }) {
  const [header] = useState(idempotencyKey);
  const [name, setName] = useState('');
  const [email, setEmail] = useState('');
  const [owner, setOwner] = useState('');
  const [created, setCreated] = useState<Team | null>(null);
  if (created) {
    const [first] = created.members;
    return (
      <>
        {first?.api_key && <Secret label={`The key of ${first.name}`} value={first.api_key} />}
        <div className="dialog-actions">
          <Button kind="primary" onPress={close}>
            Done
          </Button>
        </div>
      </>
    );
  }
  const body = { name, members: [{ email, name: owner, role: 'team_owner' as const }] };
  const create = () => answerOf(api.POST('/api/team', { params: { header }, body }));
  return (
    <ActionForm
      submit="Create"
      action={create}
      invalidates={['teams', 'profile']}
      done="The team was created."
      onDone={setCreated}
      onCancel={close}
    >
      {(problem) => (
        <>
          <Field label="Name" value={name} onChange={setName} error={problem?.fields.name} isRequired />
          <Field
            label="E-mail of its owner"
            type="email"
            value={email}
            onChange={setEmail}
            error={problem?.fields['members.0.email']}
            isRequired
          />
          <Field label="Name of its owner" value={owner} onChange={setOwner} error={problem?.fields['members.0.name']} isRequired />
        </>
      )}
    </ActionForm>
  );
}
