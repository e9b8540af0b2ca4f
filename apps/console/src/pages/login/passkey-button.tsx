import { useState } from 'react';
import { asProblem, type Problem } from '../../api/problem.js';
import { Button } from '../../parts/button.js';
import { ProblemNote } from '../../parts/states.js';
import { logInWithPasskey } from '../../session/session.js';
import { ticketOf } from './outcome.js';

export function PasskeyButton({ onDone }: { onDone: () => void }) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const byPasskey = async () => {
    setProblem(null);
    await ticketOf(logInWithPasskey());
    onDone();
  };
  return (
    <>
      {problem !== null && <ProblemNote problem={problem} isInForm />}
      <Button onPress={() => void byPasskey().catch((error: unknown) => setProblem(asProblem(error)))}>
        Log in with a passkey
      </Button>
    </>
  );
}
