/**
 * What goes wrong with an SSH host, by what can be done about it.
 *
 * - `name`, `refused`, `unreachable`, `timeout`, `cut`: of the network or of a host that is busy or restarting. Worth
 *   another try. After `timeout` and `cut` a command may have run or not: look before doing it again.
 * - `busy`: the host has no room for another connection or channel. Worth another try.
 * - `address_forbidden`: the host's name leads to an address that must not be dialled. Permanent until the name or the
 *   settings change.
 * - `not_ssh`: something answers that is not an SSH server we can talk to. Permanent.
 * - `host_key_changed`: another key than the pinned one: another machine, or somebody in between. Permanent until an
 *   operator has looked.
 * - `authentication`: the log-in was refused. Permanent for this credential; trying again looks like an attack.
 * - `output_too_large`: a command, or the host beside it, sent more than it may; the connection was ended.
 */
export type SshErrorKind =
  | 'name'
  | 'refused'
  | 'unreachable'
  | 'timeout'
  | 'cut'
  | 'busy'
  | 'address_forbidden'
  | 'not_ssh'
  | 'host_key_changed'
  | 'authentication'
  | 'output_too_large';

const permanent: ReadonlySet<SshErrorKind> = new Set([
  'address_forbidden',
  'not_ssh',
  'host_key_changed',
  'authentication',
]);

/** The message is a sentence that names no secret and no address; its cause is for logs. */
export class SshError extends Error {
  readonly isPermanent: boolean;

  constructor(
    readonly kind: SshErrorKind,
    message: string,
    options: ErrorOptions = {},
  ) {
    super(message, options);
    this.isPermanent = permanent.has(kind);
  }
}

const sentences: Record<SshErrorKind, string> = {
  name: 'The name of the host cannot be resolved.',
  refused: 'The host refuses connections on its SSH port.',
  unreachable: 'The host cannot be reached.',
  timeout: 'The host did not answer in time.',
  cut: 'The connection to the host was lost.',
  busy: 'The host accepts no further SSH session now.',
  address_forbidden: 'The host has an address that Atoll must not connect to.',
  not_ssh: 'No compatible SSH server answers on this port.',
  host_key_changed: 'The host key differs from the pinned one.',
  authentication: 'The host refuses the log-in.',
  output_too_large: 'A command on the host wrote more than expected and was ended.',
};

export function sshError(kind: SshErrorKind, cause?: unknown): SshError {
  return new SshError(kind, sentences[kind], { cause });
}

const byCode: Record<string, SshErrorKind> = {
  ENOTFOUND: 'name',
  EAI_AGAIN: 'name',
  EAI_NODATA: 'name',
  ENODATA: 'name',
  ECONNREFUSED: 'refused',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  EHOSTDOWN: 'unreachable',
  ETIMEDOUT: 'timeout',
  ECONNRESET: 'cut',
  EPIPE: 'cut',
};

/** ssh2 says by `level` in which layer it failed. Every error that is none of ours becomes one. */
export function toSshError(error: unknown): SshError {
  if (error instanceof SshError) return error;
  const { code, level, message = '' } = Object(error) as { code?: string; level?: string; message?: string };
  if (level === 'client-authentication') return sshError('authentication', error);
  if (level === 'client-timeout') return sshError('timeout', error);
  if (level === 'protocol') return sshError('not_ssh', error);
  // The key exchange: no algorithm in common. That the host key was refused is known before.
  if (level === 'handshake') return sshError('not_ssh', error);
  if (/Channel open failure/.test(message)) return sshError('busy', error);
  return sshError(byCode[code ?? ''] ?? 'cut', error);
}
