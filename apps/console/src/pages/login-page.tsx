import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { Button } from '../parts/button.js';
import icon from '../icon.svg';
import { currentSession } from '../session/session.js';
import { KeyForm } from './login/key-form.js';
import { PasswordForm } from './login/password-form.js';

const reasons = {
  never: 'The console of your GPU cloud.',
  logout: 'You are logged out.',
  expired: 'Your session has ended. Log in again to go on where you were.',
};

export function LoginPage() {
  const navigate = useNavigate();
  const { next = '/' } = useSearch({ from: '/sign-in' });
  const [isByKey, setByKey] = useState(false);
  const session = currentSession();
  useEffect(() => {
    document.title = 'Log in · Atoll';
  }, []);
  const goOn = () => void navigate({ href: next, replace: true });
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
        {isByKey ? <KeyForm onDone={goOn} /> : <PasswordForm onDone={goOn} />}
        <Button kind="plain" onPress={() => setByKey(!isByKey)}>
          {isByKey ? 'Use e-mail and password' : 'Use an API key'}
        </Button>
      </div>
    </main>
  );
}
