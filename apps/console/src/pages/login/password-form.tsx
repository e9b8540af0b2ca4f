import { useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { answerOf, api } from '../../api/client.js';
import { asProblem, waitOf } from '../../api/problem.js';
import { Button } from '../../parts/button.js';
import { Field } from '../../parts/fields.js';
import { PasswordField } from '../../parts/password-field.js';
import { say } from '../../parts/toasts.js';
import { logInWithCode, logInWithPassword } from '../../session/session.js';
import { knownAddress } from './known-address.js';
import { LoginForm } from './login-form.js';
import { ticketOf } from './outcome.js';
import { Providers } from './providers.js';
import { waysQuery } from './ways-query.js';

interface PasswordFormProps {
  onDone: () => void;
  /** Buttons that are there from the first. */
  children: ReactNode;
}

/**
 * The log-in by a password. What is known only when the platform has said how people can log in comes below the
 * buttons: it would move them from under the pointer that presses one.
 */
export function PasswordForm({ onDone, children }: PasswordFormProps) {
  const ways = useQuery(waysQuery);
  const [known] = useState(knownAddress);
  const [email, setEmail] = useState(known);
  const [password, setPassword] = useState('');
  const [ticket, setTicket] = useState<string | null>(null);
  const logIn = async () => {
    const wanted = await ticketOf(logInWithPassword(email, password));
    if (wanted !== null) return setTicket(wanted);
    onDone();
  };
  const reset = async () => {
    await answerOf(api.POST('/api/user/password-reset', { body: { email } }));
    say('If this address has an account, a link is on its way to it.');
  };
  if (ticket !== null)
    return (
      <>
        <CodeForm ticket={ticket} onDone={onDone} onRestart={() => setTicket(null)} />
        {children}
      </>
    );
  return (
    <>
      <LoginForm submit="Log in" action={logIn} fields={['email', 'password']}>
        {(problem) => (
          <>
            <Field
              label="E-mail"
              type="email"
              value={email}
              onChange={setEmail}
              autoComplete="username"
              error={problem?.fields.email}
              isRequired
              // oxlint-disable-next-line jsx-a11y/no-autofocus -- the first field of a page that is this form
              autoFocus={known === ''}
            />
            <PasswordField
              kind="current"
              value={password}
              onChange={setPassword}
              error={problem?.fields.password}
              // oxlint-disable-next-line jsx-a11y/no-autofocus -- the first field that is empty
              autoFocus={known !== ''}
            />
          </>
        )}
      </LoginForm>
      {children}
      <Providers providers={ways.data?.data ?? []} />
      {ways.data?.sends_mail === false && (
        <p className="hint">Lost your password? Ask the operator for a link to set a new one.</p>
      )}
      {email !== '' && ways.data?.sends_mail && (
        <Button
          kind="plain"
          onPress={() =>
            void reset().catch((error: unknown) =>
              say(`The link could not be asked for. ${waitOf(asProblem(error)) ?? 'Try again.'}`),
            )
          }
        >
          Send me a link for a new password
        </Button>
      )}
    </>
  );
}

interface CodeFormProps {
  ticket: string;
  onDone: () => void;
  onRestart: () => void;
}

function CodeForm({ ticket, onDone, onRestart }: CodeFormProps) {
  const [code, setCode] = useState('');
  const confirm = async () => {
    await ticketOf(logInWithCode(ticket, code.trim()));
    onDone();
  };
  return (
    <>
      <LoginForm submit="Confirm" action={confirm} fields={['code']}>
        {(problem) => (
          <Field
            label="Code"
            value={code}
            onChange={setCode}
            // oxlint-disable-next-line jsx-a11y/no-autofocus -- the field before it is gone
            autoFocus
            autoComplete="one-time-code"
            hint="From your authenticator, or one of your recovery codes."
            error={problem?.fields.code}
            isRequired
          />
        )}
      </LoginForm>
      <Button kind="plain" onPress={onRestart}>
        Start again
      </Button>
    </>
  );
}
