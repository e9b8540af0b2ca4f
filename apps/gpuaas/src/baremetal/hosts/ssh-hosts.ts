import { SshError, SshSession, type DialOptions, type SshErrorKind, type SshTarget } from '@atoll/ssh';
import { StepFailed, type StepContext } from '@atoll/state-machine';
import { FairSemaphore } from '@atoll/waiting';
import { crowdedCode, type HostDriver, type HostRef, type Inspection, type Tenancy } from './host-driver.js';
import {
  createUserScript,
  inspectScript,
  keysScript,
  passwordScript,
  reachScript,
  readyMark,
  revokeScript,
  rootShell,
  seenScript,
} from './host-scripts.js';

const codes: Record<SshErrorKind, string> = {
  name: 'host_name_unknown',
  refused: 'host_refused',
  unreachable: 'host_unreachable',
  timeout: 'host_timeout',
  cut: 'connection_lost',
  busy: 'host_busy',
  address_forbidden: 'address_forbidden',
  not_ssh: 'not_ssh',
  host_key_changed: 'host_key_changed',
  authentication: 'login_refused',
  output_too_large: 'output_too_large',
};
/** Failures of a script after which another try fares no better. */
const permanentFailures = new Set([
  'superseded',
  'user_exists',
  'host_in_use',
  'tool_missing',
  'not_linux',
  'leftovers',
  'no_password_login',
]);

/** Codes of failures that say that a host cannot be reached, rather than that something is wrong with it. */
export const unreachableCodes: ReadonlySet<string> = new Set(
  (['name', 'refused', 'unreachable', 'timeout', 'cut', 'busy'] as const).map((kind) => codes[kind]),
);

export interface SshHostsOptions extends DialOptions {
  /** At once, of this process; one a host. */
  readonly maxConnections: number;
  /** Milliseconds for which one may wait for its connection, in all. */
  readonly waitMs: number;
}

/** Hosts over SSH. */
export class SshHosts implements HostDriver {
  private readonly connections: FairSemaphore;
  /** Half of the connections, but at least one, so that silent hosts hold up no step that somebody waits for. */
  private readonly looks: FairSemaphore;

  constructor(private readonly options: SshHostsOptions) {
    const { maxConnections: permits } = options;
    this.connections = new FairSemaphore({ permits, permitsPerKey: 1 });
    this.looks = new FairSemaphore({ permits: Math.max(1, Math.floor(permits / 2)) });
  }

  async inspect(host: HostRef, context: StepContext): Promise<Inspection> {
    const inspect = (): Promise<Inspection> =>
      this.asRoot(host, inspectScript, context, ({ hostKey }, lines) => {
        const { facts, numberOf } = factsIn(lines);
        const memoryKb = numberOf('memory_kb');
        return {
          hostKey,
          fence: String(numberOf('fence') ?? 0),
          machineId: /^[0-9a-f]{32}$/.exec(facts.get('machine_id') ?? '')?.[0] ?? '',
          found: {
            gpu_model: shown(facts.get('gpu_model') ?? '').slice(0, 200) || null,
            gpu_count: numberOf('gpu_count'),
            cpu_cores: numberOf('cpu_cores'),
            memory_gb: memoryKb === null ? null : Math.max(1, Math.round((memoryKb * 1024) / 1e9)),
          },
        };
      });
    return this.visit(host, context, inspect, { isLook: true, isUrgent: true });
  }

  async seen(host: HostRef, context: StepContext): Promise<string> {
    return this.visit(host, context, () =>
      this.asRoot(host, seenScript, context, (_session, lines) => String(factsIn(lines).numberOf('fence') ?? 0)),
    );
  }

  async look(host: HostRef, context: StepContext): Promise<void> {
    await this.visit(host, context, () => this.asRoot(host, reachScript, context), { isLook: true });
  }

  async reach(host: HostRef, context: StepContext): Promise<void> {
    await this.visit(host, context, () => this.asRoot(host, reachScript, context));
  }

  async createUser(host: HostRef, tenancy: Tenancy, context: StepContext): Promise<void> {
    await this.visit(host, context, () => this.asRoot(host, createUserScript(tenancy), context));
  }

  async placeKeys(host: HostRef, tenancy: Tenancy, context: StepContext): Promise<void> {
    await this.visit(host, context, () => this.putKeys(host, tenancy, [tenancy.proofKey.publicKey], context));
  }

  async changeKeys(host: HostRef, tenancy: Tenancy, context: StepContext): Promise<void> {
    await this.visit(host, context, () => this.putKeys(host, tenancy, tenancy.keys, context));
  }

  async setPassword(host: HostRef, tenancy: Tenancy, context: StepContext): Promise<void> {
    await this.visit(host, context, () => this.asRoot(host, passwordScript(tenancy), context));
  }

  async verify(host: HostRef, tenancy: Tenancy, context: StepContext): Promise<void> {
    await this.visit(host, context, async () => {
      // An earlier try may have taken the proof key out, and let the team in.
      await this.putKeys(host, tenancy, [tenancy.proofKey.publicKey], context);
      for (const [how, target] of logInsOf(host, tenancy)) {
        if (!(await this.opens(target, context))) {
          throw new StepFailed(`${how}_refused`, `The host refuses the log-in with the ${how} that was just set.`);
        }
      }
      await this.putKeys(host, tenancy, tenancy.keys, context);
    });
  }

  async revoke(host: HostRef, tenancy: Tenancy, context: StepContext): Promise<void> {
    await this.visit(host, context, async () => {
      await this.asRoot(host, revokeScript(tenancy), context);
      for (const [how, target] of logInsOf(host, tenancy)) {
        if (await this.opens(target, context)) {
          throw new StepFailed('still_open', `The host still accepts the ${how} of the removed user.`);
        }
      }
    });
  }

  /**
   * Waits for a connection before anything is done: once it is had, it serves all sessions of the visit, one after the
   * other. `isUrgent`: goes before the looks that wait.
   */
  private async visit<T>(
    host: HostRef,
    context: StepContext,
    work: () => Promise<T>,
    { isLook = false, isUrgent = false } = {},
  ): Promise<T> {
    const signal = AbortSignal.any([context.signal, AbortSignal.timeout(this.options.waitMs)]);
    const key = keyOf(host);
    const releases: (() => void)[] = [];
    try {
      if (isLook) {
        // Another visit of the host ends before the look holds what other looks wait for.
        (await this.connections.acquire({ key, signal }))();
        releases.push(await this.looks.acquire({ signal, isUrgent }));
      }
      releases.push(await this.connections.acquire({ key, signal }));
    } catch (cause) {
      for (const release of releases) release();
      throw new StepFailed(crowdedCode, 'All SSH connections of Atoll are in use.', false, { cause });
    }
    try {
      return await work();
    } catch (error) {
      throw stepFailed(error);
    } finally {
      for (const release of releases) release();
    }
  }

  private putKeys(host: HostRef, tenancy: Tenancy, keys: readonly string[], context: StepContext): Promise<void> {
    return this.asRoot(host, keysScript(tenancy, keys), context);
  }

  /** Whether the user can log in and is the expected one. Throws if the host does not tell. */
  private async opens(target: SshTarget, context: StepContext): Promise<boolean> {
    try {
      const session = await SshSession.open(target, this.options, context.signal);
      try {
        const { stdout } = await session.run({ command: 'id -un' }, context.signal);
        return stdout.trim() === target.user;
      } finally {
        session.close();
      }
    } catch (error) {
      if (error instanceof SshError && error.kind === 'authentication') return false;
      throw error;
    }
  }

  private async asRoot<T = void>(
    host: HostRef,
    script: string,
    context: StepContext,
    read?: (session: SshSession, lines: readonly string[]) => T,
  ): Promise<T> {
    const session = await SshSession.open(host, this.options, context.signal);
    try {
      const { code, stdout, stderr } = await session.run({ command: rootShell, input: script }, context.signal);
      const lines = stdout.split('\n');
      if (!lines.includes(readyMark)) throw noPrivileges(host, code, stderr);
      const [, failure = '', sentence = ''] =
        lines.map((line) => /^atoll-failed (\S+) (.*)$/.exec(line)).find(Boolean) ?? [];
      if (failure) throw new StepFailed(failure.slice(0, 64), shown(sentence), permanentFailures.has(failure));
      // Killed, or nobody knows.
      if (code !== 0)
        throw new StepFailed(
          'script_failed',
          `A script on the host ended with ${code === null ? 'a signal' : `code ${code}`}.`,
        );
      return read?.(session, lines) as T;
    } finally {
      session.close();
    }
  }
}

/** The platform's own sessions and those that prove something: one a host in all. */
function keyOf({ host, port }: HostRef): string {
  return `${host.toLowerCase()}:${port}`;
}

function logInsOf(host: HostRef, { username, password, proofKey }: Tenancy): ['password' | 'key', SshTarget][] {
  const target = { host: host.host, port: host.port, hostKey: host.hostKey, user: username };
  return [
    ['password', { ...target, credential: { password } }],
    ['key', { ...target, credential: { privateKey: proofKey.privateKey } }],
  ];
}

function factsIn(lines: readonly string[]): { facts: Map<string, string>; numberOf: (name: string) => number | null } {
  const facts = new Map<string, string>();
  for (const line of lines) {
    const [, name, value = ''] = /^atoll-fact (\w+) (.*)$/.exec(line) ?? [];
    if (name) facts.set(name, value.trim());
  }
  return { facts, numberOf: (name) => (/^\d{1,15}$/.test(facts.get(name) ?? '') ? Number(facts.get(name)) : null) };
}

function noPrivileges({ user }: HostRef, code: number | null, stderr: string): StepFailed {
  if (code === null) return new StepFailed('connection_lost', 'The connection to the host was lost.');
  const why = code === 127 ? 'the host lacks sudo' : shown(stderr) || `code ${code}`;
  return new StepFailed(
    'no_privileges',
    `${user} is not root and has no password-less sudo: ${why}.`.slice(0, 400),
    true,
  );
}

function stepFailed(error: unknown): unknown {
  if (!(error instanceof SshError)) return error;
  return new StepFailed(codes[error.kind], error.message, error.isPermanent, { cause: error });
}

/** What a host says, fit to be shown: one line, of characters that a reader sees. */
function shown(text: string): string {
  return (text.trim().split('\n', 1)[0] ?? '').replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 300);
}
