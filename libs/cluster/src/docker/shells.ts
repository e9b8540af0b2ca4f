import { randomUUID } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { FairSemaphore } from '@atoll/waiting';
import { ClusterError } from '../cluster-error.js';
import type { ObjectRef } from '../objects.js';
import type { Shell, ShellExit, ShellRequest } from '../shell.js';
import type { Containers } from './containers.js';
import type { Engine, EngineCall, EngineKind } from './engine.js';
import type { ContainerAnswer } from './engine-answer.js';
import { isMissing, isRefusal } from './engine-errors.js';
import { ExecShell, type ExecCalls } from './exec-shell.js';
import type { Names } from './names.js';
import { endSession, sessionExec, signalSession } from './session-scripts.js';
import type { Sessions } from './sessions.js';

/** Resizes and signals that are under way, beside the other calls of an engine. */
const gesturesAtOnce = 4;
/** For a resize: no longer than somebody would wait for it. */
const resizeMs = 5_000;
/** Docker detaches a terminal at these keys, by default ctrl-p ctrl-q. Podman has no such keys. */
const detachKeys: Record<EngineKind, string> = { docker: 'ctrl-@,ctrl-^,ctrl-@,ctrl-^', podman: '' };

type ShellCall = Pick<EngineCall, 'forPod' | 'isBounded' | 'signal'>;

/** Shells in pods by exec. The image needs `sh`. */
export class Shells {
  readonly #open = new Set<ExecShell>();
  /**
   * Resizes and signals of all shells of the engine: they take turns by pod, apart from its other calls. Neither delays
   * the other, however many there are.
   */
  readonly #gestures = new FairSemaphore({ permits: gesturesAtOnce });

  constructor(private readonly parts: { engine: Engine; containers: Containers; names: Names; sessions: Sessions }) {}

  async open(ref: ObjectRef, request: ShellRequest, signal: AbortSignal): Promise<Shell> {
    const { containers, engine, names } = this.parts;
    const forPod = names.of(ref);
    const pod = await containers.find(forPod, signal, forPod);
    if (pod?.State.Status !== 'running') throw new ClusterError('not_found', 'The pod is not running.');
    const kind = await engine.kind(signal);
    const mark = randomUUID();
    const { id, socket } = await this.#attach(pod, request, bodyOf(request, kind, mark), { forPod, signal });
    const calls: ExecCalls = {
      exit: () => this.#exitOf(id, forPod),
      resize: ({ columns, rows }) => this.#gestures.run(() => this.#resize(id, columns, rows), { key: forPod }),
      signal: (name, session) =>
        this.#gestures.run(
          () => this.#run(pod.Id, [signalSession, 'sh', name, session], { isBounded: true, signal: unending() }),
          { key: forPod },
        ),
      end: (session) => this.#run(pod.Id, [endSession[kind], 'sh', session], { forPod, signal: unending() }),
    };
    const shell = new ExecShell(socket, request.terminal !== null, calls, kind === 'podman' ? mark : null);
    this.#open.add(shell);
    void shell.exit.finally(() => this.#open.delete(shell));
    await shell.begin(signal);
    return shell;
  }

  async #attach(
    pod: ContainerAnswer,
    request: ShellRequest,
    exec: object,
    call: ShellCall,
  ): Promise<{ id: string; socket: Duplex }> {
    const { engine, names, sessions } = this.parts;
    const end = sessions.begin(names.teamOf(pod.Config.Labels));
    try {
      const id = await this.#create(pod.Id, exec, call);
      const body = { Detach: false, Tty: request.terminal !== null };
      const socket = await engine.upgrade({ method: 'POST', path: `/exec/${id}/start`, body, ...call });
      socket.once('close', end);
      return { id, socket };
    } catch (error) {
      end();
      throw error;
    }
  }

  async #create(containerId: string, body: object, shellCall: ShellCall): Promise<string> {
    try {
      const call = { method: 'POST', path: `/containers/${containerId}/exec`, body, ...shellCall } as const;
      return (await this.parts.engine.json<{ Id: string }>(call)).Id;
    } catch (error) {
      if (!isMissing(error) && !isRefusal(error, 409)) throw error;
      throw new ClusterError('not_found', 'The pod is not running.', { cause: error });
    }
  }

  /** A script as root in the pod, without waiting for its end. */
  async #run(containerId: string, script: readonly string[], call: ShellCall): Promise<void> {
    const id = await this.#create(containerId, { Cmd: ['sh', '-c', ...script], User: '0' }, call);
    await this.parts.engine.json({ method: 'POST', path: `/exec/${id}/start`, body: { Detach: true }, ...call });
  }

  async #resize(id: string, columns: number, rows: number): Promise<void> {
    const query = { h: rows, w: columns };
    const call = { isBounded: true, signal: unending(), deadlineMs: resizeMs };
    await this.parts.engine.json({ method: 'POST', path: `/exec/${id}/resize`, query, ...call });
  }

  /** null while it runs. An end that Podman has not seen has the code -1, as with containers. */
  async #exitOf(id: string, forPod: string): Promise<ShellExit | null> {
    const call = { method: 'GET', path: `/exec/${id}/json`, forPod, signal: unending() } as const;
    const { Running, ExitCode } = await this.parts.engine.json<{ Running: boolean; ExitCode: number | null }>(call);
    return Running ? null : { code: ExitCode !== null && ExitCode < 0 ? null : ExitCode };
  }

  close(): void {
    for (const shell of this.#open) shell.disconnect();
  }
}

/** For what only its deadline ends. */
function unending(): AbortSignal {
  return new AbortController().signal;
}

function bodyOf(request: ShellRequest, kind: EngineKind, mark: string): object {
  const { terminal, env } = request;
  const variables = [...env, ...(terminal ? [['TERM', terminal.type] as const] : [])];
  const { Cmd, Env } = sessionExec(request, kind, mark);
  return {
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    Tty: terminal !== null,
    DetachKeys: detachKeys[kind],
    Env: [...variables.map(([name, value]) => `${name}=${value}`), ...Env],
    Cmd,
  };
}
