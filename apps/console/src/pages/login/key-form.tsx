import { useState } from 'react';
import { answerOf, api } from '../../api/client.js';
import { Problem } from '../../api/problem.js';
import { Field } from '../../parts/fields.js';
import { logInWithKey } from '../../session/session.js';
import { LoginForm } from './login-form.js';

const noKey = new Problem(
  401,
  'unauthenticated',
  'This is no API key: a key is atl_ and 38 letters and digits. It is shown whole only when it is made, and with … in the place of its middle later.',
  null,
);

/** Throws a `Problem` where the key opens nothing. */
async function requireKey(key: string): Promise<void> {
  // No header takes it: a key as it is shown after its creation, or other text.
  if (!/^[!-~]+$/.test(key)) throw noKey;
  await answerOf(api.GET('/api/user/profile', { headers: { authorization: `Bearer ${key}` } }));
}

export function KeyForm({ onDone }: { onDone: () => void }) {
  const [key, setKey] = useState('');
  const logIn = async () => {
    await requireKey(key.trim());
    logInWithKey(key.trim());
    onDone();
  };
  return (
    <LoginForm submit="Log in" action={logIn}>
      {() => (
        <Field
          label="API key"
          type="password"
          value={key}
          onChange={setKey}
          autoComplete="off"
          hint="Kept only in the memory of this tab until you close or reload it. The operator’s key is printed at the first start."
          isRequired
          // oxlint-disable-next-line jsx-a11y/no-autofocus -- the first field of a page that is this form
          autoFocus
        />
      )}
    </LoginForm>
  );
}
