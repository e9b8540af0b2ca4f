import { answerOf, api } from '../api/client.js';
import { roleName } from '../format/format.js';
import { Button } from '../parts/button.js';
import { sendChanges } from '../parts/changes.js';
import { Field } from '../parts/fields.js';
import { Ask, FormDialog, Made } from '../parts/form-dialog.js';
import { Card, Figure, Page } from '../parts/page.js';
import { Secret } from '../parts/secret.js';
import { Empty } from '../parts/states.js';
import type { User } from '../api/access.js';
import { currentSession, replaceKey } from '../session/session.js';
import { useUser } from '../api/user-context.js';
import { PasskeysCard } from './profile/passkeys-card.js';
import { SecondFactorCard } from './profile/second-factor-card.js';
import { SessionsCard } from './profile/sessions-card.js';
import { CreateOwnTeam } from './create-own-team.js';

export function ProfilePage() {
  const user = useUser();
  return (
    <Page title="Your profile">
      <Card title="You" actions={<EditProfile user={user} />}>
        <dl className="figures">
          <Figure name="Name" value={<span className="given">{user.name}</span>} hint={user.email} />
          <Figure name="Zone" value={user.timezone} hint="Used for bills and times." />
          <Figure name="GPUs your teams hold" value={user.card_count} />
          {user.second_factor !== null && (
            <Figure
              name="Log-in"
              isText
              value={logInWays(user.second_factor)}
              hint={
                user.second_factor.is_set || user.second_factor.passkeys > 0
                  ? undefined
                  : 'A password alone can be guessed or stolen.'
              }
            />
          )}
        </dl>
      </Card>
      <Card title="Your teams" actions={user.second_factor !== null && <CreateOwnTeam />}>
        {user.teams.length === 0 ? (
          <Empty title="You are in no team">Create one, or ask an owner or admin of a team to add you.</Empty>
        ) : (
          <ul className="list">
            {user.teams.map(({ id, name, role }) => (
              <li key={id}>
                <span className="given">{name}</span>
                <span className="hint">{roleName(role)}</span>
              </li>
            ))}
          </ul>
        )}
      </Card>
      {user.second_factor === null ? (
        <Card title="More of you">
          <p className="hint">
            You are logged in with a key of one team. Your sessions, SSH keys and second factors are shown when you log
            in by your password.
          </p>
        </Card>
      ) : (
        <>
          <SessionsCard />
          {currentSession().kind === 'session' && (
            <>
              <SecondFactorCard factor={user.second_factor} />
              <PasskeysCard />
            </>
          )}
          <OwnKey />
        </>
      )}
    </Page>
  );
}

function logInWays({ is_set, passkeys }: NonNullable<User['second_factor']>): string {
  const password = is_set ? 'Password and a code' : 'Password alone';
  if (passkeys === 0) return password;
  return `${password}, or ${passkeys === 1 ? 'a passkey' : `one of ${passkeys} passkeys`}`;
}

function EditProfile({ user: { name, timezone } }: { user: User }) {
  return (
    <FormDialog
      title="Edit your profile"
      trigger={<Button>Edit</Button>}
      initial={{ name, timezone }}
      keptAs="profile"
      submit="Save"
      action={(values, _header, touched) =>
        sendChanges(values, touched, (body) => answerOf(api.PUT('/api/user/profile', { body })))
      }
      invalidates={['profile', 'bill']}
      done="Your profile was saved."
    >
      {({ field }) => (
        <>
          <Field label="Name" {...field('name')} isRequired />
          <Field
            label="Zone"
            {...field('timezone')}
            hint={`A name of the IANA database. This browser is in ${Intl.DateTimeFormat().resolvedOptions().timeZone}.`}
            isRequired
          />
        </>
      )}
    </FormDialog>
  );
}

function OwnKey() {
  return (
    <Card title="A key of your own">
      <p className="hint">
        It acts for you in all your teams. For a program that needs one team, use the key of your membership instead.
      </p>
      <div className="actions">
        <MakeKey />
        <Ask
          title="Revoke your own key"
          question={<p>Programs that use it are refused from now on, and so is this page if you logged in with it.</p>}
          trigger={<Button kind="danger">Revoke it</Button>}
          submit="Revoke"
          action={() => answerOf(api.DELETE('/api/user/api-key'))}
          invalidates={['profile']}
          done="Your key was revoked."
        />
      </div>
    </Card>
  );
}

function MakeKey() {
  return (
    <FormDialog
      title="Make a key of your own"
      trigger={<Button>Make a key</Button>}
      initial={{ ip_whitelist: '' }}
      submit="Make the key"
      action={(body, header) => replaceKey(() => answerOf(api.POST('/api/user/api-key', { params: { header }, body })))}
      invalidates={[]}
      done="A key was made."
      shown={({ api_key }) => (
        <Made>
          <Secret label="Your key" value={api_key} another="Make a key once more to get another." />
        </Made>
      )}
    >
      {({ field }) => (
        <>
          <p>Your previous key stops working at once.</p>
          <Field
            label="From addresses"
            {...field('ip_whitelist')}
            hint="Addresses or CIDRs, separated by commas; empty allows any."
          />
        </>
      )}
    </FormDialog>
  );
}
