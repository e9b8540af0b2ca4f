import type { ReactNode } from 'react';
import { asProblem } from '../api/problem.js';
import { ProblemNote, Skeleton } from '../parts/states.js';
import { resumeSession } from '../session/session.js';

const longestPauseS = 8;

/**
 * Goes on with the session of this browser. While the platform does not say whether there is one, shows that, and why,
 * and asks again.
 */
export async function resume(show: (page: ReactNode) => void): Promise<void> {
  const showWaiting = () =>
    show(
      <main className="main">
        <Skeleton height={420} label="Looking for your session" />
      </main>,
    );
  showWaiting();
  for (let pauseS = 1; ; pauseS = Math.min(2 * pauseS, longestPauseS)) {
    const problem = await resumeSession().then(() => null, asProblem);
    // What is refused for good, as at another address than the platform's own, keeps nobody from the log-in by an API
    // key.
    if (problem === null || (problem.status !== 0 && problem.status < 429)) return;
    await new Promise<void>((askAgain) => {
      const timer = setTimeout(askAgain, 1_000 * (problem.retryAfterSeconds ?? pauseS));
      const onRetry = () => {
        clearTimeout(timer);
        showWaiting();
        askAgain();
      };
      show(
        <main className="main">
          <ProblemNote problem={problem} onRetry={onRetry} isAskedAgain />
        </main>,
      );
    });
  }
}
