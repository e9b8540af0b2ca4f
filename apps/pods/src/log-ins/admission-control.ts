import type { ClusterDriver, ObjectRef } from '@atoll/cluster';
import type { CallerCredential } from '@atoll/contracts';

/** Who is let into which pod: by an SSH key, or by a terminal that they have opened as a caller of the API. */
export interface Admission {
  readonly podId: string;
  readonly podName: string;
  readonly teamId: string;
  readonly userId: string;
  /** The SSH key by which they came; null, as `fingerprint`, for a terminal. */
  readonly sshKeyId: string | null;
  readonly fingerprint: string | null;
  /** The key or session that opened the terminal, which ends with it; null for an SSH key, which stands for itself. */
  readonly credential: CallerCredential | null;
  /** The run that was there at the log-in; null where the pod does not run. */
  readonly run: { readonly ref: ObjectRef; readonly driver: ClusterDriver } | null;
}

/** Which log-ins are admitted, and which admissions are revoked. */
export abstract class AdmissionControl {
  /**
   * null where there is no such pod, where nobody has the key, and where nobody who has it may use the pod. All three
   * take the same way, so that a caller without a key learns nothing of what exists. Throws where it cannot be decided
   * now.
   */
  abstract admit(podName: string, fingerprint: string): Promise<Admission | null>;

  /**
   * A user who has already been identified, by this credential. null as for `admit`. Throws where it cannot be decided
   * now.
   */
  abstract admitUser(podName: string, userId: string, credential: CallerCredential): Promise<Admission | null>;

  /**
   * Those of the admissions that hold no more, each with the reason, a sentence for its user. Throws where it cannot be
   * decided now.
   */
  abstract revoked(admissions: readonly Admission[]): Promise<ReadonlyMap<Admission, string>>;
}

/** The audit trail of log-ins. */
export abstract class LogInTrail {
  /** Returns what `ended` is called with. */
  abstract began(admission: Admission, address: string): Promise<string>;
  abstract ended(logInId: string, reason: string): Promise<void>;
}
