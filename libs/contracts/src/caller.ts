/** Roles inside a team. What each may do: `access.ts`. */
export const teamRoles = ['team_owner', 'team_admin', 'member', 'billing_viewer', 'viewer'] as const;
export type TeamRole = (typeof teamRoles)[number];

interface CallerTeam {
  readonly teamId: string;
  readonly role: TeamRole;
  /** The team requires a second factor, and this session, or key of the user as a whole, lacks one there. */
  readonly lacksSecondFactor?: boolean;
}

/** By what a user calls. */
export interface CallerCredential {
  readonly kind: 'key' | 'session';
  /** UUID of the API key or of the session. */
  readonly id: string;
  /** Of a session: the instant of its log-in, RFC 3339. */
  readonly openedAt?: string;
}

/** A person, or a script holding one of that person's keys. */
export interface UserCaller {
  readonly kind: 'user';
  readonly userId: string;
  readonly credential: CallerCredential;
  /**
   * `membership`: the key opens one team and nothing else, as do the sessions of a user who is confined to a team.
   * `user`: it acts for the user as a whole.
   */
  readonly scope: 'user' | 'membership';
  /** Never true for a membership key. */
  readonly platformAdmin: boolean;
  /**
   * The operator, by a session without the second factor that the operator’s part requires: `platformAdmin` is false.
   */
  readonly lacksOperatorFactor?: boolean;
  /** IANA zone of the user's profile: what `local` means in a billing path. */
  readonly timezone: string;
  /**
   * Of a membership key: who was shown it in place of its user, who was invited and has not accepted yet. Until then
   * what it does counts with all such keys that this user was shown (`holderOf`). Never shown to anybody.
   */
  readonly heldBy?: string;
  readonly teams: readonly CallerTeam[];
}

/** A service that acts by itself: a relay, a timer, a start. */
interface SystemCaller {
  readonly kind: 'system';
  readonly service: string;
}

export type Caller = UserCaller | SystemCaller;

/** Metadata of a call, sent in NATS headers and signed by the caller. */
export interface CallContext {
  readonly requestId: string;
  /** W3C Trace Context, passed on as it came. */
  readonly traceparent?: string;
  /** Epoch milliseconds after which nobody waits for the answer any more. */
  readonly deadlineAtMs: number;
  readonly caller: Caller;
  readonly idempotency?: Idempotency;
}

/** A caller's promise that calls with this key are one call. Kept 24 h by the service that owns the operation. */
export interface Idempotency {
  readonly key: string;
  /** User, team, method and path: the same key elsewhere is another key. */
  readonly scope: string;
  /** SHA-256 (hex) of the body: the same key with another body is a mistake. */
  readonly fingerprint: string;
}
