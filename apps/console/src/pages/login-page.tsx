import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { Button } from '../parts/button.js';
import { isUnsent } from '../parts/unsent.js';
import { currentSession } from '../session/session.js';
import { KeyForm } from './login/key-form.js';
import { LoginCard } from './login/login-card.js';
import { PasskeyButton } from './login/passkey-button.js';
import { PasswordForm } from './login/password-form.js';

const reasons = {
  never: 'The console of your GPU cloud.',
  logout: 'You are logged out.',
  again: 'Log in again to go on where you were.',
  expired: 'Your session has ended. Log in again to go on where you were.',
};

export function LoginPage() {
  const navigate = useNavigate();
  const { next = '/' } = useSearch({ from: '/sign-in' });
  const [isByKey, setByKey] = useState(false);
  const session = currentSession();
  const goOn = () => void navigate({ href: next, replace: true });
  const lead = reasons[session.kind === 'none' ? session.ended : 'never'];
  const ofForm = ' What you typed is there when you open the form again, unless you log in at a provider.';
  const otherForm = (
    <Button kind="plain" onPress={() => setByKey(!isByKey)}>
      {isByKey ? 'Use e-mail and password' : 'Use an API key'}
    </Button>
  );
  return (
    <LoginCard title="Log in to Atoll" lead={isUnsent() ? lead + ofForm : lead}>
      {isByKey ? (
        <>
          <KeyForm onDone={goOn} />
          {otherForm}
        </>
      ) : (
        <PasswordForm onDone={goOn}>
          <PasskeyButton onDone={goOn} />
          {otherForm}
        </PasswordForm>
      )}
    </LoginCard>
  );
}
