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
