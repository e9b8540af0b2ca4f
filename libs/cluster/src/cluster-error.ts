/**
 * Why a cluster did not do what was requested. A permanent error comes back with every unchanged retry; any other may
 * pass, so retry with back-off.
 *
 * - `unreachable`: no connection, no answer in time, or an answer with a status of 5xx. The cluster may have done it.
 * - `timeout`: the signal was aborted before the cluster answered. The cluster may have done it.
 * - `unauthorised`: the cluster refuses our credentials, or a permission of theirs; or we do not trust its certificate.
 *   Permanent until that is changed.
 * - `another_cluster`: what answers is not the cluster that was set (`ClusterDriver.identify`). Permanent until an
 *   operator has looked.
 * - `image_not_found`, `image_needs_login`, `image_too_large`: permanent for this image.
 * - `invalid`: the cluster refuses the object itself, or its name belongs to an object that is not ours. Permanent.
 * - `port_in_use`: something else holds the external port. Permanent for this port.
 * - `no_space`: the cluster has no disk, memory or addresses left, or no room for another session of the team.
 * - `slice_missing`: a GPU slice of the pod does not exist on the node. The lease must be checked.
 * - `in_use`: something still uses the object that was to be removed.
 * - `not_found`: the object does not exist.
 * - `refused`: nothing listens on the port.
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
  | 'in_use'
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

/**
 * What a driver throws. The message is a sentence for the team that owns the object: no addresses of hosts, no secrets,
 * no stack; those may be in `cause`.
 */
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
