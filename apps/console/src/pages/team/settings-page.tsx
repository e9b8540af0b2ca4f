import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { teamImagesQuery, teamQuery } from '../../api/queries.js';
import { Button } from '../../parts/button.js';
import { sendChanges } from '../../parts/changes.js';
import { Field, Toggle } from '../../parts/fields.js';
import { Ask, FormDialog } from '../../parts/form-dialog.js';
import { Listing } from '../../parts/listing.js';
import { Card, Figure, ListRow, Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { instant } from '../../format/format.js';
import { may, roleIn } from '../../api/access.js';
import { useUser } from '../../api/user-context.js';
import { DeleteTeam } from './delete-team.js';

type Team = Schemas['Team'];

export function SettingsPage() {
  const { teamId } = useParams({ from: '/in/teams/$teamId' });
  const user = useUser();
  const team = useQuery(teamQuery(teamId));
  const mayManage = may(user, teamId, 'manageTeam');
  const mayDelete = ['team_owner', 'platform_admin'].includes(roleIn(user, teamId) ?? '');
  return (
    <Page title="Team settings">
      <Loaded query={team} height={320}>
        {(data) => (
          <div className="stack">
            <Card title="Team" actions={mayManage && <EditTeam team={data} />}>
              <dl className="figures">
                <Figure name="Name" value={<span className="given">{data.name}</span>} hint={data.description} />
                <Figure
                  name="Sessions"
                  isText
                  value={data.require_second_factor ? 'With a second factor' : 'Also by password alone'}
                />
                <Figure name="Since" isText value={instant(data.created_at, user.timezone)} />
              </dl>
              <p className="hint">
                Team id <code>{data.id}</code>
              </p>
            </Card>
            <Workspaces team={data} mayManage={mayManage} />
            <Images team={data} />
            {mayDelete && <DeleteTeam team={data} />}
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function EditTeam({ team: { id, name, description, require_second_factor } }: { team: Team }) {
  return (
    <FormDialog
      title="Edit the team"
      trigger={<Button>Edit</Button>}
      initial={{ name, description, require_second_factor }}
      keptAs="team"
      submit="Save"
      action={(values, _header, touched) =>
        sendChanges(values, touched, (body) =>
          answerOf(api.PUT('/api/team/{team_id}', { params: { path: { team_id: id } }, body })),
        )
      }
      invalidates={['team', 'profile', 'teams']}
      done="The team was saved."
    >
      {({ values, field }) => (
        <>
          <Field label="Name" {...field('name')} isRequired />
          <Field label="Description" {...field('description')} />
          <Toggle
            label="Require a second factor"
            isOn={values.require_second_factor}
            {...field('require_second_factor')}
          />
          <p className="hint">
            Members who log in by password alone cannot act in the team then, you included. API keys of members who
            joined while none was required are not affected.
          </p>
        </>
      )}
    </FormDialog>
  );
}

function Workspaces({ team, mayManage }: { team: Team; mayManage: boolean }) {
  return (
    <Card title="Workspaces" actions={mayManage && <NameWorkspace team={team} />}>
      <Listing label="Workspaces" rows={team.workspaces} keyOf={({ id }) => id} findBy={({ name }) => [name]}>
        {({ rows }) => (
          <ul className="list">
            {rows.map((workspace) => (
              <ListRow key={workspace.id} head={workspace.name}>
                {mayManage && (
                  <span className="actions">
                    <NameWorkspace team={team} workspace={workspace} />
                    <Ask
                      title="Delete the workspace"
                      question={<p className="given">“{workspace.name}” can be deleted while nothing is in it.</p>}
                      submit="Delete"
                      action={() =>
                        answerOf(
                          api.DELETE('/api/workspace/{workspace_id}', {
                            params: { path: { workspace_id: workspace.id } },
                          }),
                        )
                      }
                      invalidates={['team']}
                      done="The workspace was deleted."
                    />
                  </span>
                )}
              </ListRow>
            ))}
          </ul>
        )}
      </Listing>
    </Card>
  );
}

function NameWorkspace({ team, workspace }: { team: Team; workspace?: { id: string; name: string } }) {
  return (
    <FormDialog
      title={workspace ? 'Rename the workspace' : 'Create a workspace'}
      trigger={<Button isSmall={workspace !== undefined}>{workspace ? 'Rename' : 'Create'}</Button>}
      initial={{ name: workspace?.name ?? '' }}
      submit="Save"
      action={({ name }, header) => {
        if (!workspace)
          return answerOf(api.POST('/api/workspace', { params: { header }, body: { team_id: team.id, name } }));
        return answerOf(
          api.PUT('/api/workspace/{workspace_id}', {
            params: { path: { workspace_id: workspace.id } },
            body: { name },
          }),
        );
      }}
      invalidates={['team']}
      done="The workspace was saved."
    >
      {({ field }) => <Field label="Name" {...field('name')} isRequired />}
    </FormDialog>
  );
}

function Images({ team }: { team: Team }) {
  const images = useQuery(teamImagesQuery(team.id));
  return (
    <Card title="Images that may run">
      <p className="hint given">Policy “{team.policy_info.policy_name}”, set by the operator.</p>
      <Loaded query={images} height={80}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No image is listed">
              The default policy allows every image; any other allows those it lists.
            </Empty>
          ) : (
            <ul className="list">
              {data.map(({ id, name, reference }) => (
                <li key={id}>
                  <span className="given">{name}</span>
                  <code className="given">{reference}</code>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Card>
  );
}
