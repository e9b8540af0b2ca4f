import { Link } from '@tanstack/react-router';
import { asProblem } from '../api/problem.js';
import { Empty, ProblemNote } from '../parts/states.js';

export function MissingPage() {
  return (
    <main className="main">
      <h1>There is no such page</h1>
      <Empty
        title="The address may be mistyped"
        action={
          <Link to="/" className="button" data-kind="primary">
            Go to the overview
          </Link>
        }
      >
        If a link led you here, tell whoever sent it.
      </Empty>
    </main>
  );
}

/** A page that failed: by a fault of its own, or because its script could not be read. */
export function CrashPage({ error }: { error: unknown }) {
  return (
    <main className="main">
      <h1>This page failed</h1>
      <ProblemNote problem={asProblem(error)} onRetry={() => location.reload()} />
    </main>
  );
}
