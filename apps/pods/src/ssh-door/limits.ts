/** What one client, one network (`networkOf`) and all together may take. */
export interface DoorLimits {
  readonly connections: number;
  /** Connections of one network that have not logged in. */
  readonly strangersOfNetwork: number;
  /** Connections that have not logged in. One that comes then takes the place of another. */
  readonly strangers: number;
  readonly connectionsOfUser: number;
  /** Log-ins that one connection may try; an agent offers its keys one after the other. */
  readonly tries: number;
  /** Failed log-ins of one address in a minute. */
  readonly failuresOfAddress: number;
  /** From the connection to the log-in. */
  readonly graceMs: number;
  /** Shells and commands at once, of one connection. */
  readonly sessions: number;
  /** Forwarded connections at once, of one connection. */
  readonly forwards: number;
}

export const usualLimits: DoorLimits = {
  connections: 1_000,
  strangersOfNetwork: 20,
  strangers: 100,
  connectionsOfUser: 50,
  tries: 10,
  failuresOfAddress: 60,
  graceMs: 30_000,
  sessions: 32,
  forwards: 128,
};
