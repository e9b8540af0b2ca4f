import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { Button } from '../parts/button.js';
import { currentSession } from '../session/session.js';
import { KeyForm } from './login/key-form.js';
import { LoginCard } from './login/login-card.js';
import { OtherWays } from './login/other-ways.js';
import { PasswordForm } from './login/password-form.js';
import { waysQuery } from './login/ways-query.js';

const reasons = {
  never: 'The console of your GPU cloud.',
  logout: 'You are logged out.',
  again: 'Log in again to go on where you were.',
  expired: 'Your session has ended. Log in again to go on where you were.',
};

/** How long what is below the form waits for the ways to log in. */
const patienceMs = 3_000;

export function LoginPage() {
  const navigate = useNavigate();
  const { next = '/' } = useSearch({ from: '/sign-in' });
  const [isByKey, setByKey] = useState(false);
  const isSettled = useSettledWays();
  const session = currentSession();
  const goOn = () => void navigate({ href: next, replace: true });
  return (
    <LoginCard title="Log in to Atoll" lead={reasons[session.kind === 'none' ? session.ended : 'never']}>
      {isByKey ? (
        <KeyForm onDone={goOn} />
      ) : (
        <>
          <PasswordForm onDone={goOn} />
          {isSettled && <OtherWays onDone={goOn} />}
        </>
      )}
      {isSettled && (
        <Button kind="plain" onPress={() => setByKey(!isByKey)}>
          {isByKey ? 'Use e-mail and password' : 'Use an API key'}
        </Button>
      )}
    </LoginCard>
  );
}

/**
 * Whether the ways to log in are known, or were waited for long enough. What is below the form comes all at once: what
 * comes later would move a button from under the pointer that presses it.
 */
function useSettledWays(): boolean {
  const { isPending } = useQuery(waysQuery);
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), patienceMs);
    return () => clearTimeout(timer);
  }, []);
  return isLate || !isPending;
}
