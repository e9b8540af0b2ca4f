/**
 * Why a cluster did not do what it was asked. Permanent ones make no sense to repeat unchanged; all others are worth another try with back-off.
 *
 * - `unreachable`: no connection, or the engine answers 5xx. Says nothing of what the cluster did.
 * - `timeout`: the signal was aborted while the cluster had not answered. It may have done it.
 * - `unauthorised`: the cluster refuses our credentials, or this right of theirs. Permanent until they are changed.
 * - `another_cluster`: what answers is not the cluster that was set (`ClusterDriver.identify`). Permanent until an operator has looked.
 * - `image_not_found`, `image_needs_login`, `image_too_large`: permanent for this image.
 * - `invalid`: the cluster refuses the object itself, such as a command that its engine cannot start. Permanent.
 * - `port_in_use`: something that is not ours holds the external port. Permanent for this port.
 * - `no_space`: the cluster's disk or memory is full.
 * - `slice_missing`: a GPU slice that the pod was given is not there. The lease has to be looked at.
 * - `not_found`: the object is gone.
 * - `refused`: nothing listens where a connection was asked for.
 * - `not_supported`: this driver cannot do it; `Capabilities` says so beforehand.
 */
export type ClusterErrorCode =
  | 'unreachable'
  | 'timeout'
  | 'unauthorised'
  | 'another_cluster'
  | 'image_not_found'
  | 'image_needs_login'
  | 'image_too_large'
  | 'invalid'
  | 'port_in_use'
  | 'no_space'
  | 'slice_missing'
  | 'not_found'
  | 'refused'
  | 'not_supported';

const permanent: ReadonlySet<ClusterErrorCode> = new Set([
  'unauthorised',
  'another_cluster',
  'image_not_found',
  'image_needs_login',
  'image_too_large',
  'invalid',
  'port_in_use',
  'not_supported',
]);

/** What a driver throws. The message is a sentence for the team that owns the object: no addresses of hosts, no secrets, no stack. */
export class ClusterError extends Error {
  readonly isPermanent: boolean;

  constructor(
    readonly code: ClusterErrorCode,
    message: string,
    options: ErrorOptions = {},
  ) {
    super(message, options);
    this.isPermanent = permanent.has(code);
  }
}
