import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { asProblem, type Problem } from '../../api/problem.js';
import { Button } from '../../parts/button.js';
import { ProblemNote } from '../../parts/states.js';
import { logInWithPasskey } from '../../session/session.js';
import { ticketOf } from './outcome.js';
import { waysQuery } from './ways-query.js';

/** No form: its answer leads to another origin, which the policy of this page refuses to forms. */
export function Providers({ providers }: { providers: readonly { id: string; name: string }[] }) {
  return providers.map(({ id, name }) => (
    <a key={id} className="button" href={`/api/user/sso/${encodeURIComponent(id)}`}>
      Log in with {name}
    </a>
  ));
}

/** Without a password: a passkey, and the providers of single sign-on. */
export function OtherWays({ onDone }: { onDone: () => void }) {
  const ways = useQuery(waysQuery);
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
      <Providers providers={ways.data?.data ?? []} />
    </>
  );
}
