import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { Form } from 'react-aria-components/Form';
import { api } from '../api/client.js';
import { asProblem, problemOf, type Problem } from '../api/problem.js';
import icon from '../icon.svg';
import { Button } from '../parts/button.js';
import { Field } from '../parts/fields.js';
import { ProblemNote } from '../parts/states.js';
import { currentSession, logInWithKey } from '../session/session.js';

/** Throws a `Problem` where the key opens nothing. */
async function requireKey(key: string): Promise<void> {
  const { response, error } = await api.GET('/api/user/profile', { headers: { authorization: `Bearer ${key}` } });
  if (!response.ok) throw problemOf(response, error);
}

const reasons = {
  never: 'The console of your GPU cloud.',
  logout: 'You are logged out.',
  expired: 'Your session has ended. Log in again to go on where you were.',
};

export function LoginPage() {
  const navigate = useNavigate();
  const { next = '/' } = useSearch({ from: '/sign-in' });
  const [key, setKey] = useState('');
  const [isWorking, setWorking] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const session = currentSession();
  useEffect(() => {
    document.title = 'Log in · Atoll';
  }, []);
  const logIn = async () => {
    setWorking(true);
    try {
      await requireKey(key.trim());
      logInWithKey(key.trim());
      await navigate({ href: next, replace: true });
    } catch (error) {
      setProblem(asProblem(error));
      setWorking(false);
    }
  };
  return (
    <main className="login">
      <div className="login-card">
        <header className="stack">
          <img src={icon} alt="" width="44" height="44" />
          <div>
            <h1>Log in to Atoll</h1>
            <p className="quiet">{reasons[session.kind === 'none' ? session.ended : 'never']}</p>
          </div>
        </header>
        <Form
          onSubmit={(event) => {
            event.preventDefault();
            if (!isWorking) void logIn();
          }}
        >
          <Field
            label="API key"
            type="password"
            value={key}
            onChange={setKey}
            autoComplete="off"
            hint="Kept in the memory of this tab alone, until it is closed or reloaded."
            isRequired
          />
          {problem !== null && <ProblemNote problem={problem} />}
          <Button type="submit" kind="primary" isBusy={isWorking}>
            {isWorking ? 'Checking…' : 'Log in'}
          </Button>
        </Form>
        <p className="hint">The operator’s key is printed at the first start. Members get theirs from an admin of their team.</p>
      </div>
    </main>
  );
}
