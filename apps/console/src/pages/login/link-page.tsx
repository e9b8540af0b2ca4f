import { queryOptions, useQuery } from '@tanstack/react-query';
import { Link, useLocation } from '@tanstack/react-router';
import { useState } from 'react';
import { answerOf, api } from '../../api/client.js';
import { asProblem, isOfDeadLink } from '../../api/problem.js';
import { Field } from '../../parts/fields.js';
import { PasswordField } from '../../parts/password-field.js';
import { rememberAddress } from './known-address.js';
import { currentToken } from './link-token.js';
import { LoginCard } from './login-card.js';
import { LoginForm } from './login-form.js';
import { Providers } from './providers.js';
import { waysQuery } from './ways-query.js';

/** Whoever is logged in in this browser has no part in it. */
const asNobody = { fetch: (request: Request) => fetch(request) };

/**
 * Whether the link can be used, so that nobody chooses a password for a dead one. If the check fails, the use of the
 * link will tell.
 */
const checkOf = (token: string) =>
  queryOptions({
    queryKey: ['link', token],
    queryFn: async () => {
      await answerOf(api.POST('/api/user/link/check', { body: { token }, ...asNobody }));
      return true;
    },
    enabled: token !== '',
    staleTime: Infinity,
    gcTime: 0,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });

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
  const [isDead, setDead] = useState(false);
  const checked = useQuery(checkOf(token));
  const providers = useQuery(waysQuery).data?.data ?? [];
  if (token === '') {
    return (
      <LoginCard title="The link is not complete" lead="Open the complete link from the message.">
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
  if (isDead || (checked.error && isOfDeadLink(asProblem(checked.error)))) {
    return (
      <LoginCard
        title="This link is no longer valid"
        lead={
          <span role="alert">
            It was already used, has expired, or was replaced by a newer one. If you have set a password already, log in
            with it. If not, ask whoever invited you for another link, or ask for a new password at the log-in.
          </span>
        }
      >
        <ToLogIn />
      </LoginCard>
    );
  }
  const set = async () => {
    const body = { token, password, ...(name !== '' && { name }) };
    try {
      const used = await answerOf(api.POST('/api/user/link', { body, ...asNobody }));
      rememberAddress(used.email);
      setEmail(used.email);
    } catch (error) {
      if (!isOfDeadLink(asProblem(error))) throw error;
      setDead(true);
    }
  };
  return (
    <LoginCard
      title="Set your password"
      lead="Choose a password. If you were invited and already have an account here, enter its password."
    >
      <LoginForm submit="Set it" action={set} fields={['name', 'password']}>
        {(problem) => (
          <>
            <Field
              label="Name, if you are new"
              value={name}
              onChange={setName}
              autoComplete="name"
              error={problem?.fields.name}
              // oxlint-disable-next-line jsx-a11y/no-autofocus -- the first field of a page that is this form
              autoFocus
            />
            <PasswordField kind="new" value={password} onChange={setPassword} error={problem?.fields.password} />
          </>
        )}
      </LoginForm>
      {providers.length > 0 && (
        <>
          <p className="hint">
            If you can log in by single sign-on, you need no password: log in, and accept the invitation there.
          </p>
          <Providers providers={providers} />
        </>
      )}
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
