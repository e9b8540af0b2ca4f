import { permissions, type CallerCredential, type TeamRole } from '@atoll/contracts';
import {
  isClosedTo,
  isClosedToKeysWithoutFactor,
  teamDirectory,
  type HeldCredential,
  type LiveCredential,
  type RoleInTeam,
  type UserInTeam,
} from '@atoll/contracts/teams';
import { nilId, Statements } from '@atoll/database';
import { Rpc, systemContext } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import { Clusters } from '../cluster/clusters.js';
import { AdmissionControl, type Admission } from './admission-control.js';
import { podEnded } from './shell-end.js';

const askMs = 5_000;
/** Who is asked about at once. */
const askAtOnce = 1_000;
/**
 * Who holds the key, with the pod, or nulls where there is none of this name. Anyone may add the public key of another,
 * and must not keep that one out: those who are known to have one of the roles `$3` in the team come first. The others
 * may have got it a moment ago.
 */
const holdersQuery = `
  SELECT k.ssh_key_id, k.user_id, k.lacks_second_factor, p.pod_id, p.team_id, p.gpuaas_id, p.run, p.state
  FROM ssh_key k LEFT JOIN pod p ON p.pod_name = $1 AND p.state <> 'deleted'
  WHERE k.fingerprint = $2
  ORDER BY EXISTS (SELECT FROM member_role m WHERE m.team_id = p.team_id AND m.user_id = k.user_id AND m.role = ANY ($3)) DESC, k.created_at, k.ssh_key_id
  LIMIT ${askAtOnce}`;

/** The user, with the pod as above. */
const userQuery = `
  SELECT NULL::uuid AS ssh_key_id, w.user_id, false AS lacks_second_factor, p.pod_id, p.team_id, p.gpuaas_id, p.run, p.state
  FROM (SELECT $2::uuid AS user_id) w LEFT JOIN pod p ON p.pod_name = $1 AND p.state <> 'deleted'`;

interface Holder {
  readonly ssh_key_id: string | null;
  readonly user_id: string;
  /** Of the key. */
  readonly lacks_second_factor: boolean;
  readonly pod_id: string | null;
  readonly team_id: string | null;
  readonly gpuaas_id: string | null;
  readonly run: number | null;
  readonly state: string | null;
}

/**
 * Lets in the members whose role may use pods. A role is asked of the teams service, so that what it was a moment ago
 * opens nothing.
 */
@Injectable()
export class PodAdmissionControl extends AdmissionControl {
  constructor(
    private readonly statements: Statements,
    private readonly rpc: Rpc,
    private readonly clusters: Clusters,
  ) {
    super();
  }

  async admit(podName: string, fingerprint: string): Promise<Admission | null> {
    const values = [podName, fingerprint, permissions.useResources];
    const found = await this.statements.query<Holder>(holdersQuery, values);
    return this.#admitOneOf(found, { podName, fingerprint, credential: null });
  }

  async admitUser(podName: string, userId: string, credential: CallerCredential): Promise<Admission | null> {
    const found = await this.statements.query<Holder>(userQuery, [podName, userId]);
    return this.#admitOneOf(found, { podName, fingerprint: null, credential });
  }

  async #admitOneOf(
    holders: readonly Holder[],
    comes: Pick<Admission, 'podName' | 'fingerprint' | 'credential'>,
  ): Promise<Admission | null> {
    // Asked in any case: the time that it takes must not tell whether there is such a pod or key.
    const pairs = holders.map(({ user_id, team_id }) => ({ user_id, team_id: team_id ?? nilId }));
    const roles = await this.#roles(pairs.length > 0 ? pairs : [{ user_id: nilId, team_id: nilId }]);
    // Each role is the one in the team of the pod.
    const roleOf = new Map(roles.map((role) => [role.user_id, role]));
    const holder = holders.find((one) => {
      const role = roleOf.get(one.user_id);
      return role !== undefined && mayComeIn(role, one);
    });
    if (!holder?.pod_id || !holder.team_id) return null;
    const { pod_id: podId, ssh_key_id: sshKeyId, team_id: teamId, user_id: userId } = holder;
    return { ...comes, podId, teamId, userId, sshKeyId, run: await this.#runOf(podId, holder) };
  }

  async #runOf(podId: string, { gpuaas_id, run, state }: Holder): Promise<Admission['run']> {
    if (state !== 'running' || gpuaas_id === null || run === null) return null;
    return { ref: { kind: 'pod', id: podId, run }, driver: await this.clusters.driverOf(gpuaas_id) };
  }

  async revoked(admissions: readonly Admission[]): Promise<ReadonlyMap<Admission, string>> {
    const revoked = new Map<Admission, string>();
    for (let at = 0; at < admissions.length; at += askAtOnce) {
      for (const [admission, reason] of await this.#revokedOf(admissions.slice(at, at + askAtOnce)))
        revoked.set(admission, reason);
    }
    return revoked;
  }

  async #revokedOf(admissions: readonly Admission[]): Promise<[Admission, string][]> {
    const [keys, runs, roles, credentials] = await Promise.all([
      this.#keys(admissions.flatMap(({ sshKeyId }) => sshKeyId ?? [])),
      this.#runs(admissions.map(({ podId }) => podId)),
      this.#roles(admissions.map(({ userId: user_id, teamId: team_id }) => ({ user_id, team_id }))),
      this.#liveCredentials(admissions.flatMap(({ credential }) => credential ?? [])),
    ]);
    const reasonOf = ({ podId, podName, run, sshKeyId, teamId, userId, credential }: Admission): string | null => {
      const live = credential && credentials.get(credential.id);
      if (credential && !live) return endOf[credential.kind];
      const key = sshKeyId === null ? undefined : keys.get(sshKeyId);
      if (sshKeyId !== null && !key) return 'Your SSH key was removed.';
      const role = roles.find(({ user_id, team_id }) => user_id === userId && team_id === teamId);
      if (!role || !isAllowed(role.role)) return 'You may no longer use the pods of this team.';
      if (live && isClosedTo(live, role)) return factorMissing[live.kind];
      if (sshKeyId !== null && role.is_invited)
        return 'Your SSH key opens the pods of this team once you have accepted its invitation.';
      if (key?.lacks_second_factor && isClosedToKeysWithoutFactor(role)) return factorMissing.ssh;
      if (run && runs.get(podId) !== run.ref.run) return podEnded(podName);
      return null;
    };
    return admissions.flatMap((admission): [Admission, string][] => {
      const reason = reasonOf(admission);
      return reason ? [[admission, reason]] : [];
    });
  }

  async #keys(ids: readonly string[]): Promise<ReadonlyMap<string, Pick<Holder, 'lacks_second_factor'>>> {
    const query = 'SELECT ssh_key_id, lacks_second_factor FROM ssh_key WHERE ssh_key_id = ANY ($1::uuid[])';
    const rows = await this.statements.query<{ ssh_key_id: string; lacks_second_factor: boolean }>(query, [ids]);
    return new Map(rows.map((row) => [row.ssh_key_id, row]));
  }

  async #runs(podIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const query = `SELECT pod_id, run FROM pod WHERE pod_id = ANY ($1::uuid[]) AND state = 'running'`;
    const rows = await this.statements.query<{ pod_id: string; run: number }>(query, [podIds]);
    return new Map(rows.map(({ pod_id, run }) => [pod_id, run]));
  }

  async #liveCredentials(asked: readonly CallerCredential[]): Promise<ReadonlyMap<string, LiveCredential>> {
    if (asked.length === 0) return new Map();
    const credentials = asked.map(({ kind, id }): HeldCredential => ({ kind, id }));
    const live = await this.rpc.call(
      teamDirectory.liveCredentials,
      { credentials },
      systemContext('pods', { deadlineMs: askMs }),
    );
    return new Map(live.credentials.map((credential) => [credential.id, credential]));
  }

  async #roles(asked: readonly UserInTeam[]): Promise<readonly RoleInTeam[]> {
    const context = systemContext('pods', { deadlineMs: askMs });
    return (await this.rpc.call(teamDirectory.roles, { members: [...asked] }, context)).members;
  }
}

/** What is told where what opened the terminal has ended. */
const endOf: Record<CallerCredential['kind'], string> = {
  key: 'The API key that opened this terminal has expired or was revoked.',
  session: 'The session that opened this terminal has ended. Log in again.',
};

const factorMissing = {
  key: 'This team requires a second factor, which the API key that opened this terminal lacks.',
  session: 'This team requires a second factor. Add one, or log in with it.',
  ssh:
    'This team requires a second factor, and your SSH key was added without one. ' +
    'Remove the key, and add it again in a session with a second factor.',
};

const isAllowed = (role: TeamRole): boolean => (permissions.useResources as readonly TeamRole[]).includes(role);

/**
 * A suspended team's members start nothing new; what they have open stays. The SSH keys of those who have not accepted
 * their invitation open nothing: the team would learn that it invited a user of the platform. Nor does one that was
 * added without the second factor that the team required when its user joined, as with API keys. A terminal follows the
 * permissions of the API.
 */
function mayComeIn(team: RoleInTeam, { ssh_key_id, lacks_second_factor }: Holder): boolean {
  if (!isAllowed(team.role) || team.is_suspended) return false;
  if (ssh_key_id === null) return true;
  return !team.is_invited && !(lacks_second_factor && isClosedToKeysWithoutFactor(team));
}
