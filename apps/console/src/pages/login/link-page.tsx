import { Link, useLocation } from '@tanstack/react-router';
import { useState } from 'react';
import { answerOf, api } from '../../api/client.js';
import { Field } from '../../parts/fields.js';
import { PasswordField } from '../../parts/password-field.js';
import { currentToken } from './link-token.js';
import { LoginCard } from './login-card.js';
import { LoginForm } from './login-form.js';

/** Sets a password by a one-time link: that of an invitation, of a reset, or of the operator. */
export function LinkPage() {
  // Another link may be opened in this tab.
  useLocation();
  const token = currentToken();
  return <Setting key={token} token={token} />;
}

function Setting({ token }: { token: string }) {
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const [email, setEmail] = useState<string | null>(null);
  if (token === '') {
    return (
      <LoginCard title="The link is not complete" lead="Open it as it stands in the message, to its last character.">
        <ToLogIn />
      </LoginCard>
    );
  }
  if (email !== null) {
    return (
      <LoginCard title="The password is set" lead={<span className="given">Log in as {email}.</span>}>
        <ToLogIn />
      </LoginCard>
    );
  }
  const set = async () => {
    const body = { token, password, ...(name !== '' && { name }) };
    // Whoever is logged in in this browser has no part in it.
    const used = await answerOf(api.POST('/api/user/link', { body, fetch: (request: Request) => fetch(request) }));
    setEmail(used.email);
  };
  return (
    <LoginCard
      title="Set your password"
      lead="Choose one. If you were invited and have an account here already, enter the password that it has."
    >
      <LoginForm submit="Set it" action={set}>
        {(problem) => (
          <>
            <Field label="Name, if you are new" value={name} onChange={setName} autoComplete="name" error={problem?.fields.name} />
            <PasswordField kind="new" value={password} onChange={setPassword} error={problem?.fields.password} />
          </>
        )}
      </LoginForm>
    </LoginCard>
  );
}

function ToLogIn() {
  return (
    <Link to="/sign-in" className="button" data-kind="primary">
      Log in
    </Link>
  );
}
