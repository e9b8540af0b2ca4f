import type { Duplex } from 'node:stream';
import { FairSemaphore } from '@atoll/waiting';
import { ClusterError } from '../cluster-error.js';
import type { ObjectRef } from '../objects.js';
import type { Shell, ShellExit, ShellRequest } from '../shell.js';
import type { Containers } from './containers.js';
import type { Engine, EngineKind } from './engine.js';
import type { ContainerAnswer } from './engine-answer.js';
import { isMissing, isRefusal } from './engine-errors.js';
import { ExecShell } from './exec-shell.js';
import type { Names } from './names.js';
import type { Sessions } from './sessions.js';

/**
 * Says the id of the session before it becomes the command, on the stream that the session begins with: `$1` and `$2`
 * are rows and columns, the rest is the command. Podman has no size for a terminal before it is resized.
 */
const beginOnTerminal = 'stty rows "$1" cols "$2" 2>/dev/null; echo "$$"; shift 2; exec "$@"';
const beginOnPipes = 'echo "$$" >&2; shift 2; exec "$@"';
const logIn = ['sh', '-c', 'if command -v bash >/dev/null 2>&1; then exec bash -l; else exec sh -l; fi'];

/**
 * `$1`: a signal, `$2`: a session. The kernel's table of processes (proc(5), `stat`): after the name in parentheses
 * come state, parent, group, session. Only a shell is needed, since many images have no `ps` or `pkill`.
 */
const signalSession = `for d in /proc/[0-9]*; do { read -r l < "$d/stat"; } 2>/dev/null || continue
p=\${d#/proc/}; set -- "$1" "$2" \${l##*) }; [ "$6" = "$2" ] && kill -s "$1" "$p"; done 2>/dev/null`;
/**
 * HUP as a terminal that is closed sends it, then KILL to the session's first process if it is still there after 5 s.
 */
const endSession = `(set -- HUP "$1"; ${signalSession}); n=0
while kill -0 "$1" 2>/dev/null && [ $n -lt 25 ]; do sleep 0.2 || break; n=$((n+1)); done; kill -s KILL "$1" 2>/dev/null`;

/** Resizes and signals that are under way: a few of the calls that an engine takes. */
const gesturesAtOnce = 4;
/** For a resize: no longer than somebody would wait for it. */
const resizeMs = 5_000;
/** Docker detaches a terminal at these keys, by default ctrl-p ctrl-q. Podman has no such keys. */
const detachKeys: Record<EngineKind, string> = { docker: 'ctrl-@,ctrl-^,ctrl-@,ctrl-^', podman: '' };

/** Shells in pods by exec. The image needs `sh`. */
export class Shells {
  readonly #open = new Set<ExecShell>();
  /**
   * Resizes and signals of all shells of the engine: they take turns apart from its other calls, which no number of
   * them delays.
   */
  readonly #gestures = new FairSemaphore({ permits: gesturesAtOnce });

  constructor(private readonly parts: { engine: Engine; containers: Containers; names: Names; sessions: Sessions }) {}

  async open(ref: ObjectRef, request: ShellRequest, signal: AbortSignal): Promise<Shell> {
    const { containers, names } = this.parts;
    const pod = await containers.find(names.of(ref), signal);
    if (pod?.State.Status !== 'running') throw new ClusterError('not_found', 'The pod is not running.');
    const { id, socket } = await this.#attach(pod, request, signal);
    const shell = new ExecShell(socket, request.terminal !== null, {
      exit: () => this.#exitOf(id),
      resize: ({ columns, rows }) => this.#gestures.run(() => this.#resize(id, columns, rows)),
      signal: (name, session) => this.#gestures.run(() => this.#run(pod.Id, [signalSession, 'sh', name, session])),
      end: (session) => this.#run(pod.Id, [endSession, 'sh', session]),
    });
    this.#open.add(shell);
    void shell.exit.finally(() => this.#open.delete(shell));
    await shell.begin(signal);
    return shell;
  }

  async #attach(
    pod: ContainerAnswer,
    request: ShellRequest,
    signal: AbortSignal,
  ): Promise<{ id: string; socket: Duplex }> {
    const { engine, names, sessions } = this.parts;
    const end = sessions.begin(names.teamOf(pod.Config.Labels));
    try {
      const id = await this.#create(pod.Id, bodyOf(request, await engine.kind(signal)), signal);
      const body = { Detach: false, Tty: request.terminal !== null };
      const socket = await engine.upgrade({ method: 'POST', path: `/exec/${id}/start`, body, signal });
      socket.once('close', end);
      return { id, socket };
    } catch (error) {
      end();
      throw error;
    }
  }

  async #create(containerId: string, body: object, signal: AbortSignal): Promise<string> {
    try {
      const call = { method: 'POST', path: `/containers/${containerId}/exec`, body, signal } as const;
      return (await this.parts.engine.json<{ Id: string }>(call)).Id;
    } catch (error) {
      if (!isMissing(error) && !isRefusal(error, 409)) throw error;
      throw new ClusterError('not_found', 'The pod is not running.', { cause: error });
    }
  }

  /** A script as root in the pod, without waiting for its end. */
  async #run(containerId: string, script: readonly string[]): Promise<void> {
    const { signal } = new AbortController();
    const id = await this.#create(containerId, { Cmd: ['sh', '-c', ...script], User: '0' }, signal);
    await this.parts.engine.json({ method: 'POST', path: `/exec/${id}/start`, body: { Detach: true }, signal });
  }

  async #resize(id: string, columns: number, rows: number): Promise<void> {
    const [query, { signal }] = [{ h: rows, w: columns }, new AbortController()];
    await this.parts.engine.json({ method: 'POST', path: `/exec/${id}/resize`, query, signal, deadlineMs: resizeMs });
  }

  /** null while it runs. */
  async #exitOf(id: string): Promise<ShellExit | null> {
    const call = { method: 'GET', path: `/exec/${id}/json`, signal: new AbortController().signal } as const;
    const { Running, ExitCode } = await this.parts.engine.json<{ Running: boolean; ExitCode: number | null }>(call);
    return Running ? null : { code: ExitCode };
  }

  close(): void {
    for (const shell of this.#open) shell.disconnect();
  }
}

function bodyOf({ command, terminal, env }: ShellRequest, kind: EngineKind): object {
  const size = terminal ? [String(terminal.rows), String(terminal.columns)] : ['', ''];
  const variables = [...env, ...(terminal ? [['TERM', terminal.type] as const] : [])];
  return {
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    Tty: terminal !== null,
    DetachKeys: detachKeys[kind],
    Env: variables.map(([name, value]) => `${name}=${value}`),
    Cmd: ['sh', '-c', terminal ? beginOnTerminal : beginOnPipes, 'sh', ...size, ...(command ?? logIn)],
  };
}
