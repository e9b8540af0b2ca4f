/** What one client, one network (`networkOf`) and all together may take of the SSH door; beside the setting of sshd. */
export interface DoorLimits {
  /** Unauthenticated connections of one network. One that comes then takes the place of another of them. */
  readonly startupsOfNetwork: number;
  /**
   * Unauthenticated connections (`MaxStartups`). One that comes then takes the place of one of the network that has
   * most.
   */
  readonly startups: number;
  /** Log-ins that one connection may try (`MaxAuthTries`); an agent offers its keys one after the other. */
  readonly authTries: number;
  /** Connections of one network in a minute that tried keys and ended without a log-in. */
  readonly failuresOfNetwork: number;
  /** From the connection to the log-in (`LoginGraceTime`). */
  readonly logInGraceMs: number;
  /**
   * Of silence after the log-in, until the client is asked whether it is there (`ClientAliveInterval`). It ends after
   * four such times.
   */
  readonly aliveIntervalMs: number;
  /** Shells and commands at once, of one connection (`MaxSessions`). */
  readonly sessions: number;
  /** Forwarded connections at once, of one connection. */
  readonly forwards: number;
  /**
   * What a server in the pod has to take more of what a client sent before it closed its forwarded connection, which
   * counts among those until then.
   */
  readonly takeMs: number;
  /**
   * What clients have sent and pods have not taken, bytes. The windows of many thousand channels would allow more.
   */
  readonly untakenBytes: number;
  /** The part of one user. Beyond it nothing more is read of those clients of the user of which something waits. */
  readonly untakenBytesOfUser: number;
}

const mib = 1024 * 1024;

export const usualDoorLimits: DoorLimits = {
  startupsOfNetwork: 20,
  startups: 100,
  authTries: 10,
  failuresOfNetwork: 60,
  logInGraceMs: 30_000,
  aliveIntervalMs: 15_000,
  sessions: 32,
  forwards: 128,
  takeMs: 30_000,
  untakenBytes: 256 * mib,
  untakenBytesOfUser: 64 * mib,
};
