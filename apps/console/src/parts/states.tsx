import type { UseQueryResult } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { adviceFor, asProblem, isPassing, takesNewLogIn, waitOf, type Problem } from '../api/problem.js';
import { queryClient } from '../api/query-client.js';
import { logOut } from '../session/session.js';
import { Button } from './button.js';
import { HoldRows, useHeld } from './held-rows.js';

/** Room for what is being read; visible only where the wait is longer than 200 ms. */
export function Skeleton({ height = 160, label = 'Loading' }: { height?: number; label?: string }) {
  return (
    <div role="status">
      <span className="visually-hidden">{label}</span>
      <div className="skeleton" style={{ height }} />
    </div>
  );
}

export function Empty({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className="empty">
      <h3>{title}</h3>
      {children !== undefined && <p>{children}</p>}
      {action}
    </div>
  );
}

const titles: Record<number, string> = {
  0: 'No connection',
  401: 'Your session has ended',
  403: 'You may not do this',
  404: 'This was not found',
  409: 'This is in conflict with what is there',
  422: 'This cannot be done now',
  429: 'Too many calls',
  500: 'The platform failed',
  502: 'Not available right now',
  503: 'Not available right now',
  504: 'The platform took too long',
};

const titlesOfCodes: Record<string, string> = {
  console: 'The console failed',
  foreign: 'The platform did not answer',
  no_passkey: 'The device gave no passkey',
  no_passkeys: 'Passkeys do not work here',
};

function titleOf({ status, code, detail }: Problem): string {
  const ownTitle = status === 0 ? titlesOfCodes[code] : undefined;
  if (ownTitle !== undefined) return ownTitle;
  if (detail.startsWith('This address has an account already')) return 'You have an account already';
  if (status === 401 && !/session has ended/i.test(detail)) return 'You are not logged in';
  return titles[status] ?? 'This was refused';
}

interface ProblemNoteProps {
  problem: Problem;
  onRetry?: () => void;
  /** Its fields say themselves what is wrong with them. */
  isInForm?: boolean;
  /** What failed is asked again by itself where that may help; what a user did is not. */
  isAskedAgain?: boolean;
}

/** The platform's message, what to do about it, and the request id for the operator. */
export function ProblemNote({ problem, onRetry, isInForm = false, isAskedAgain = false }: ProblemNoteProps) {
  const advice = isPassing(problem) && !isAskedAgain ? waitOf(problem) : adviceFor(problem);
  return (
    <div className="problem" role="alert">
      <strong>{titleOf(problem)}</strong>
      <p>{problem.detail}</p>
      {advice !== undefined && <p>{advice}</p>}
      {!isInForm && Object.entries(problem.fields).length > 0 && (
        <ul>
          {Object.entries(problem.fields).map(([path, message]) => (
            <li key={path}>
              <code>{path}</code>: {message}
            </li>
          ))}
        </ul>
      )}
      {problem.requestId !== null && (
        <p className="small">
          Request id <code>{problem.requestId}</code>
        </p>
      )}
      {(onRetry !== undefined || problem.status === 404 || takesNewLogIn(problem)) && (
        <div className="actions">
          {takesNewLogIn(problem) && (
            <Button isSmall onPress={() => void logOut('again').catch(() => undefined)}>
              Log in again
            </Button>
          )}
          {onRetry !== undefined && (
            <Button isSmall onPress={onRetry}>
              Try again
            </Button>
          )}
          {problem.status === 404 && (
            <Link to="/" className="button" data-small="true">
              Go to the overview
            </Link>
          )}
        </div>
      )}
    </div>
  );
}

export interface LoadedProps<Data> {
  query: UseQueryResult<Data>;
  height?: number;
  /** Stands below while there is no data. */
  without?: ReactNode;
  children: (data: Data) => ReactNode;
}

/** Asks now. A query that waits for its own next try would go on waiting. */
async function tryNow<Data>(query: UseQueryResult<Data>): Promise<void> {
  const { failureReason } = query;
  if (failureReason)
    await queryClient.cancelQueries({ predicate: ({ state }) => state.fetchFailureReason === failureReason });
  await query.refetch();
}

/**
 * What a query failed with. It is told while it is tried again, which may be a minute for a platform that asks for
 * patience, and while a query without data, which has no error then, is asked anew.
 */
function useFailure<Data>(query: UseQueryResult<Data>): Error | null {
  const error = query.error ?? query.failureReason;
  const [last, setLast] = useState(error);
  if (error !== null && error !== last) setLast(error);
  return error ?? (query.isPending && query.errorUpdateCount > 0 ? last : null);
}

/** What a query failed with, until its button is pressed; the children where there is nothing to tell. */
export function Failure<Data>({ query, children }: { query: UseQueryResult<Data>; children: ReactNode }) {
  const error = useFailure(query);
  const [dismissed, dismiss] = useState<Error | null>(null);
  if (error === null || error === dismissed) return children;
  const retry = () => {
    dismiss(error);
    void tryNow(query);
  };
  return <ProblemNote problem={asProblem(error)} onRetry={retry} isAskedAgain />;
}

/**
 * The loaded data, or the error. If a refetch fails, the old data stays visible with a note. What is gone stays only
 * while a dialog is open in it: that may show a secret that is shown once, or a form that was typed in.
 */
export function Loaded<Data>({ query, height, without, children }: LoadedProps<Data>) {
  const [held, hold] = useHeld(query.data);
  const isGone = useFailure(query) !== null;
  const data = query.data === undefined && isGone ? held : query.data;
  return (
    <>
      <Failure query={query}>{data === undefined && <Skeleton {...(height !== undefined && { height })} />}</Failure>
      {data === undefined ? without : <HoldRows value={hold}>{children(data)}</HoldRows>}
    </>
  );
}
