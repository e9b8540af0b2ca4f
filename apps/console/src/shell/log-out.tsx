import { useState } from 'react';
import { Button } from '../parts/button.js';
import { say } from '../parts/toasts.js';
import { logOut } from '../session/session.js';

export function LogOut(look: { kind?: 'plain'; isWide?: boolean }) {
  const [isUnderWay, setUnderWay] = useState(false);
  const leave = () => {
    setUnderWay(true);
    void logOut().catch(() =>
      say(
        'The platform did not confirm the log-out, and the session in this browser may go on. Log in and out again to end it.',
      ),
    );
  };
  return (
    <Button {...look} isBusy={isUnderWay} onPress={leave}>
      {isUnderWay ? 'Logging out…' : 'Log out'}
    </Button>
  );
}
