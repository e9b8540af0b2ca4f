import '../../design/terminal.css';
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { asProblem, type Problem } from '../../api/problem.js';
import { Button } from '../../parts/button.js';
import { Chip } from '../../parts/chip.js';
import { Page } from '../../parts/page.js';
import { Loaded, ProblemNote } from '../../parts/states.js';
import { podQuery } from '../pods/pod-queries.js';
import { openScreen } from './screen.js';
import { TerminalLink } from './terminal-link.js';

/** `reason`: why it ended. `problem`: why it did not begin. */
type State =
  | { kind: 'opening' }
  | { kind: 'open' }
  | { kind: 'ended'; reason: string }
  | { kind: 'refused'; problem: Problem };

export function TerminalPage() {
  const { teamId, podName } = useParams({ from: '/in/teams/$teamId/pods/$podName/terminal' });
  const pod = useQuery(podQuery(teamId, podName));
  const [round, setRound] = useState(0);
  // What was written can be read and copied when the pod is gone.
  const [isKnown, setKnown] = useState(false);
  if (pod.data && !isKnown) setKnown(true);
  const [state, setState] = useState<State>({ kind: 'opening' });
  const again = () => {
    setState({ kind: 'opening' });
    setRound(round + 1);
  };
  return (
    <Page
      title={`Terminal in ${pod.data?.name ?? podName}`}
      lead={pod.data && <Chip state={pod.data.status} />}
      actions={
        <Link
          id="leave-terminal"
          className="button"
          data-small="true"
          to="/teams/$teamId/pods/$podName"
          params={{ teamId, podName }}
        >
          Back to the pod
        </Link>
      }
    >
      {state.kind === 'refused' && <ProblemNote problem={state.problem} onRetry={again} />}
      {state.kind === 'ended' && (
        <div className="notice terminal-end" role="status">
          <span className="given">{state.reason}</span>
          {pod.data && (
            <Button isSmall onPress={again}>
              Open another
            </Button>
          )}
        </div>
      )}
      <Loaded query={pod}>{() => null}</Loaded>
      {isKnown && <Shell key={round} podName={podName} onState={setState} />}
      <p className="hint">
        A shell in the pod; it ends when this page is left. <kbd>Ctrl Shift E</kbd> takes the keyboard out of it.
      </p>
    </Page>
  );
}

function Shell({ podName, onState }: { podName: string; onState: (state: State) => void }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!box.current) return;
    let isOver = false;
    let link: TerminalLink | undefined;
    const screen = openScreen(box.current, {
      onTyped: (bytes) => link?.type(bytes),
      onResize: (size) => link?.resize(size),
      onLeave: () => document.getElementById('leave-terminal')?.focus(),
    });
    const begin = async () => {
      const asked = screen.size();
      const opened = await TerminalLink.open(podName, asked, {
        onOutput: (bytes) => screen.write(bytes),
        onEnd: (reason) => {
          if (!isOver) onState({ kind: 'ended', reason });
        },
      });
      if (isOver || !opened) return opened?.close();
      link = opened;
      onState({ kind: 'open' });
      screen.focus();
    };
    begin().catch((error: unknown) => {
      if (!isOver) onState({ kind: 'refused', problem: asProblem(error) });
    });
    return () => {
      isOver = true;
      link?.close();
      screen.dispose();
    };
  }, [podName, onState]);
  return <section className="terminal-box" aria-label="Terminal" ref={box} />;
}
