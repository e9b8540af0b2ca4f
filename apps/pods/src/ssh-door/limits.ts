/** Authenticated connections of this process: SSH and terminals together. */
export interface ConnectionLimits {
  readonly connections: number;
  /** A team may also have no more than are free, so that those that have many leave room for those that have few. */
  readonly connectionsOfTeam: number;
  readonly connectionsOfUser: number;
  /** Log-ins in a minute. Each costs a key exchange and a row of the audit trail. */
  readonly logInsOfUser: number;
}

/** Log-ins of a team in a minute, for each that a user may have. */
export const logInsOfTeamPerUser = 5;

export const usualConnectionLimits: ConnectionLimits = {
  connections: 1_000,
  connectionsOfTeam: 200,
  connectionsOfUser: 50,
  logInsOfUser: 120,
};

/** What one client, one network (`networkOf`) and all together may take of the SSH door. */
export interface DoorLimits {
  /** Connections of one network that have not logged in. One that comes then takes the place of another of them. */
  readonly strangersOfNetwork: number;
  /** Connections that have not logged in. One that comes then takes the place of one of the network that has most. */
  readonly strangers: number;
  /** Log-ins that one connection may try; an agent offers its keys one after the other. */
  readonly tries: number;
  /** Connections of one network (`networkOf`) in a minute that tried keys and ended without a log-in. */
  readonly failuresOfNetwork: number;
  /** From the connection to the log-in. */
  readonly graceMs: number;
  /** Of silence after the log-in, until the client is asked whether it is there. It ends after four such times. */
  readonly pingMs: number;
  /** Shells and commands at once, of one connection. */
  readonly sessions: number;
  /** Forwarded connections at once, of one connection. */
  readonly forwards: number;
}

export const usualLimits: DoorLimits = {
  strangersOfNetwork: 20,
  strangers: 100,
  tries: 10,
  failuresOfNetwork: 60,
  graceMs: 30_000,
  pingMs: 15_000,
  sessions: 32,
  forwards: 128,
};
