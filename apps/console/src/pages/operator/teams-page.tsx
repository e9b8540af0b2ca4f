import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { teamsQuery } from '../../api/queries.js';
import { day } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { Chip } from '../../parts/chip.js';
import { Act } from '../../parts/dialogs.js';
import { Field, Toggle } from '../../parts/fields.js';
import { Ask, Found, FormDialog, Made } from '../../parts/form-dialog.js';
import { useListingPlace } from '../../parts/listing-place.js';
import { Paged } from '../../parts/paged.js';
import { Page } from '../../parts/page.js';
import { Secret } from '../../parts/secret.js';
import { Empty } from '../../parts/states.js';
import { Table } from '../../parts/table.js';
import { useUser } from '../../api/user-context.js';
import { KeyShown } from '../team/member-dialogs.js';

type Team = Schemas['Team'];

export function TeamsPage() {
  const place = useListingPlace(true, 0);
  const { timezone } = useUser();
  const teams = useQuery(teamsQuery(place.asked));
  return (
    <Page
      title="Teams"
      lead="All teams. A suspended team cannot create anything; its running resources continue."
      actions={<Actions />}
    >
      <Paged
        label="Teams"
        query={teams}
        page={String(place.asked.page)}
        first={0}
        height={320}
        place={place}
        onTurn={(next) => place.turn(Number(next))}
      >
        {({ data, pagination }) => (
          <Table
            label="Teams"
            rows={data}
            keyOf={({ id }) => id}
            empty={pagination.total === 0 && <Empty title="There is no team yet">Create one and name its owner.</Empty>}
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
              {
                title: 'State',
                cell: ({ is_suspended, status }) => <Chip state={is_suspended ? 'suspended' : status} />,
              },
              { title: 'Members', isNumber: true, cell: ({ members }) => members.length },
              {
                title: 'Policy',
                cell: ({ policy_info }) => <span className="given">{policy_info.policy_name}</span>,
              },
              { title: 'Since', cell: ({ created_at }) => day(created_at, timezone) },
              { title: '', cell: (team) => <TeamActions team={team} /> },
            ]}
          />
        )}
      </Paged>
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
      question={<p>The team may only read, stop, unsubscribe and delete. Running resources continue and are billed.</p>}
      submit="Suspend"
      action={() => answerOf(api.POST('/api/team/{team_id}/suspend', params))}
      invalidates={invalidates}
      done="The team was suspended."
    />
  );
}

function Actions() {
  return (
    <>
      <LogInLink />
      <CreateTeam />
    </>
  );
}

function LogInLink() {
  return (
    <FormDialog
      title="Link to log in"
      trigger={<Button>Link to log in</Button>}
      initial={{ email: '', remove_second_factors: false }}
      submit="Make the link"
      action={(body) => answerOf(api.POST('/api/user/login-link', { body }))}
      invalidates={[]}
      shown={({ url }) => (
        <Made>
          <Secret label="The link; works once, within 24 hours" value={url} />
        </Made>
      )}
    >
      {({ values, field }) => (
        <>
          <p>Anyone who opens it can set the password of this user. Earlier links of the user stop working.</p>
          <Field label="E-mail" type="email" {...field('email')} isRequired />
          <Toggle
            label="Remove second factors that are lost"
            isOn={values.remove_second_factors}
            {...field('remove_second_factors')}
          />
        </>
      )}
    </FormDialog>
  );
}

function CreateTeam() {
  return (
    <FormDialog
      title="Create a team"
      trigger={<Button kind="primary">Create a team</Button>}
      initial={{ name: '', email: '', owner: '' }}
      submit="Create"
      action={({ name, email, owner }, header) =>
        answerOf(
          api.POST('/api/team', {
            params: { header },
            body: { name, members: [{ email, name: owner, role: 'team_owner' }] },
          }),
        )
      }
      invalidates={['teams', 'profile']}
      done="The team was created."
      shown={({ members: [owner] }) =>
        owner ? <KeyShown member={owner} /> : <Found>The team has no owner yet.</Found>
      }
    >
      {({ field }) => (
        <>
          <Field label="Name" {...field('name')} isRequired />
          <Field label="E-mail of its owner" type="email" {...field('email', 'members.0.email')} isRequired />
          <Field label="Name of its owner" {...field('owner', 'members.0.name')} isRequired />
        </>
      )}
    </FormDialog>
  );
}
