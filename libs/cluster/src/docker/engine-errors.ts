import { ClusterError, type ClusterErrorCode } from '../cluster-error.js';

/** Characters that are kept of each end of a longer text. */
const keptOfEachEnd = 2_000;

/**
 * The engine answered with an error. `text` is its own and may name paths and addresses of the host: for the operator's
 * eyes. Of a long one only its ends are kept, where its meaning stands: an engine repeats what a registry has said, in
 * millions of characters, and the patterns below take time that grows with the square of the length.
 */
export class EngineRefusal extends Error {
  readonly text: string;

  constructor(
    readonly status: number,
    text: string,
  ) {
    super(`The container engine answered ${status}: ${text.slice(0, 500)}`);
    const isLong = text.length > 2 * keptOfEachEnd;
    this.text = isLong ? `${text.slice(0, keptOfEachEnd)}\n${text.slice(-keptOfEachEnd)}` : text;
  }
}

interface Meaning {
  /**
   * Docker and Podman differ in status and agree, mostly, in words: Podman answers 500 where Docker has a status of its
   * own.
   */
  readonly pattern: RegExp;
  readonly code: ClusterErrorCode;
  readonly message: string;
}

const meanings: readonly Meaning[] = [
  // The first, as such a text repeats the command, which may read like any of the others.
  {
    pattern:
      /executable file not found|not found in \$PATH|exec format error|command that was not found|permission denied.*exec|exec.*permission denied/i,
    code: 'invalid',
    message: 'The image cannot run this command.',
  },
  {
    pattern: /no space left on device|disk quota exceeded/i,
    code: 'no_space',
    message: 'The disk of the container engine is full.',
  },
  {
    pattern: /address already in use|port is already allocated|cannot listen on the (TCP|UDP) port/i,
    code: 'port_in_use',
    message: 'Another program on the host uses the external port.',
  },
  {
    pattern: /unresolvable CDI device/i,
    code: 'slice_missing',
    message: 'The node does not have the GPU slice.',
  },
  {
    // Docker before 25, and without its feature `cdi` before 28.2.
    pattern: /could not select device driver "cdi"/i,
    code: 'not_supported',
    message: 'The container engine gives no slices of real GPUs to pods.',
  },
  {
    pattern:
      /available.*address pool|predefined address pools|no free (private network )?subnet|could not find free subnet|subnet pools/i,
    code: 'no_space',
    message: 'The container engine has no address range left for a network.',
  },
  {
    pattern: /minimum memory limit|memory limit.*too low|memory.*too small/i,
    code: 'invalid',
    message: 'The memory limit is too small for a container.',
  },
  {
    pattern: /unable to find (user|group) |no matching entries in (passwd|group) file|uids and gids must be in range/i,
    code: 'invalid',
    message: 'The image does not have the user as which it runs.',
  },
  {
    pattern: /(workdir|cannot mkdir:) .* is not a directory/i,
    code: 'invalid',
    message: 'The working directory of the image is a file.',
  },
  {
    pattern: /(error mounting|copy up into volume).*: not a directory|source \S+ is not directory/i,
    code: 'invalid',
    message: 'The image has a file where a volume is mounted.',
  },
  {
    pattern: /no command (specified|or entrypoint provided)/i,
    code: 'invalid',
    message: 'The image names no command: set one.',
  },
];

/** A `ClusterError` of whatever a call to the engine threw. */
export function clusterErrorOf(error: unknown): ClusterError {
  if (error instanceof ClusterError) return error;
  if (!(error instanceof EngineRefusal))
    return new ClusterError('unreachable', 'The container engine sent an invalid response.', {
      cause: error,
    });
  const cause = { cause: error };
  const meaning = meanings.find(({ pattern }) => pattern.test(error.text));
  if (meaning) return new ClusterError(meaning.code, meaning.message, cause);
  if (error.status === 401 || error.status === 403)
    return new ClusterError('unauthorised', 'The container engine rejects the request.', cause);
  if (error.status === 404) return new ClusterError('not_found', 'It does not exist on the container engine.', cause);
  if (error.status === 409) return new ClusterError('in_use', 'The container engine is using it.', cause);
  if (error.status < 500)
    return new ClusterError('invalid', 'The container engine rejects the request as invalid.', cause);
  return new ClusterError('unreachable', 'The container engine failed to answer the request.', cause);
}

const permissionErrors = /^(EACCES|EPERM)$/;
const credentialErrors = /^(CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;

/** A `ClusterError` of a connection that could not be made, or that broke. */
export function connectionErrorOf(error: unknown): ClusterError {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (permissionErrors.test(code))
    return new ClusterError('unauthorised', 'Atoll may not open the socket of the container engine.', { cause: error });
  return credentialErrors.test(code)
    ? new ClusterError('unauthorised', 'The container engine and Atoll do not accept each other’s credentials.', {
        cause: error,
      })
    : new ClusterError('unreachable', 'The container engine cannot be reached, or its response was cut off.', {
        cause: error,
      });
}

/** Whether the process may not open the engine's socket. */
export function isForbidden({ cause }: ClusterError): boolean {
  return permissionErrors.test((cause as NodeJS.ErrnoException | undefined)?.code ?? '');
}

export function isRefusal(error: unknown, ...statuses: readonly number[]): error is EngineRefusal {
  return error instanceof EngineRefusal && statuses.includes(error.status);
}

/** Docker: 404. Podman: 404, or 500 in these words where another object refers to it. */
const missing = /no such (container|volume|network|object|exec)/i;
/**
 * Podman: 500 in these words for what a crash in the middle of a removal has left, and for each list that it would
 * stand in.
 */
const halfRemoved = /(container|layer) not known/i;

export function isMissing(error: unknown): boolean {
  return (
    error instanceof EngineRefusal && (error.status === 404 || missing.test(error.text) || halfRemoved.test(error.text))
  );
}

export function isHalfRemoved(error: unknown): boolean {
  return error instanceof EngineRefusal && halfRemoved.test(error.text);
}

/** Docker: 409. Podman: 500. */
export function isNameTaken(error: unknown): boolean {
  return (
    error instanceof EngineRefusal &&
    (error.status === 409 || /already in use|already exists|already used/i.test(error.text))
  );
}
