import { useState } from 'react';
import { answerOf, api, idempotencyKey, type Schemas } from '../api/client.js';
import { roleName } from '../format/format.js';
import { Button } from '../parts/button.js';
import { ActionForm, Ask, ModalBox } from '../parts/dialogs.js';
import { Field } from '../parts/fields.js';
import { Card, Figure, Page } from '../parts/page.js';
import { Secret } from '../parts/secret.js';
import { Empty } from '../parts/states.js';
import type { User } from '../api/access.js';
import { currentSession } from '../session/session.js';
import { useUser } from '../api/user-context.js';
import { PasskeysCard } from './profile/passkeys-card.js';
import { SecondFactorCard } from './profile/second-factor-card.js';
import { SessionsCard } from './profile/sessions-card.js';

export function ProfilePage() {
  const user = useUser();
  return (
    <Page title="Your profile">
      <Card title="You" actions={<EditProfile user={user} />}>
        <dl className="figures">
          <Figure name="Name" value={<span className="given">{user.name}</span>} hint={user.email} />
          <Figure name="Zone" value={user.timezone} hint="Bills and times are shown in it." />
          <Figure name="GPUs your teams hold" value={user.card_count} />
          {user.second_factor !== null && (
            <Figure
              name="Log-in"
              value={<span className="small">{logInWays(user.second_factor)}</span>}
              hint={user.second_factor.is_set || user.second_factor.passkeys > 0 ? undefined : 'A password alone can be guessed or stolen.'}
            />
          )}
        </dl>
      </Card>
      <Card title="Your teams">
        {user.teams.length === 0 ? (
          <Empty title="You are in no team">An owner or admin of a team can add you.</Empty>
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
            You are logged in by a key that opens one team. Your sessions, SSH keys and second factors are shown when you log in by your
            password.
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

function EditProfile({ user }: { user: User }) {
  const [name, setName] = useState(user.name);
  const [timezone, setTimezone] = useState(user.timezone);
  const save = () => answerOf(api.PUT('/api/user/profile', { body: { name, timezone } }));
  return (
    <ModalBox title="Edit your profile" trigger={<Button>Edit</Button>}>
      {(close) => (
        <ActionForm
          submit="Save"
          action={save}
          invalidates={['profile', 'bill']}
          done="Your profile was saved."
          onDone={close}
          onCancel={close}
        >
          {(problem) => (
            <>
              <Field label="Name" value={name} onChange={setName} error={problem?.fields.name} isRequired />
              <Field
                label="Zone"
                value={timezone}
                onChange={setTimezone}
                hint={`A name of the IANA database. This browser is in ${Intl.DateTimeFormat().resolvedOptions().timeZone}.`}
                error={problem?.fields.timezone}
                isRequired
              />
            </>
          )}
        </ActionForm>
      )}
    </ModalBox>
  );
}

function OwnKey() {
  return (
    <Card title="A key of your own">
      <p className="hint">It acts for you in all your teams. For a program that needs one team, use the key of your membership instead.</p>
      <div className="actions">
        <ModalBox title="Make a key of your own" trigger={<Button>Make a key</Button>}>
          {(close) => <OwnKeyForm close={close} />}
        </ModalBox>
        <Ask
          title="Revoke your own key"
          question={<p>Programs that use it are refused from now on, this page too where you logged in with it.</p>}
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

function OwnKeyForm({ close }: { close: () => void }) {
  const [header] = useState(idempotencyKey);
  const [addresses, setAddresses] = useState('');
  const [key, setKey] = useState<Schemas['UserKey'] | null>(null);
  if (key) {
    return (
      <>
        <Secret label="Your key" value={key.api_key} />
        <div className="dialog-actions">
          <Button kind="primary" onPress={close}>
            Done
          </Button>
        </div>
      </>
    );
  }
  const make = () => answerOf(api.POST('/api/user/api-key', { params: { header }, body: { ip_whitelist: addresses } }));
  return (
    <ActionForm submit="Make the key" action={make} invalidates={[]} done="A key was made." onDone={setKey} onCancel={close}>
      {(problem) => (
        <>
          <p>A key that you had before ends at once.</p>
          <Field
            label="From addresses"
            value={addresses}
            onChange={setAddresses}
            hint="Addresses or CIDRs, with commas between them; empty allows any."
            error={problem?.fields.ip_whitelist}
          />
        </>
      )}
    </ActionForm>
  );
}
