import { describe, expect, it } from '@jest/globals';
import { newId } from '@atoll/database';
import { AdmissionControl, type Admission } from './admission-control.js';
import { ConnectionRegistry, type AuthenticatedConnection } from './connection-registry.js';
import { Trail } from '../ssh-door/open-door-fixture.js';

/** Lets everybody in and says afterwards that they may not stay. */
class ForgetfulAdmissionControl extends AdmissionControl {
  admit(): Promise<null> {
    return Promise.resolve(null);
  }

  admitUser(): Promise<null> {
    return Promise.resolve(null);
  }

  revoked(admissions: readonly Admission[]): Promise<ReadonlyMap<Admission, string>> {
    return Promise.resolve(new Map(admissions.map((admission) => [admission, 'Your SSH key was removed.'])));
  }
}

function admissionOf(who: Partial<Admission> = {}): Admission {
  const [podId, teamId, userId, sshKeyId] = [newId(), newId(), newId(), newId()];
  return {
    podId,
    podName: 'train-abcde',
    teamId,
    userId,
    sshKeyId,
    fingerprint: 'SHA256:x',
    credential: null,
    run: null,
    ...who,
  };
}

it('a connection whose key was removed between the admission and the log-in is ended, by no broadcast and no timer', async () => {
  const trail = new Trail();
  const left = Promise.withResolvers<void>();
  const admission = admissionOf();
  const connection = {
    admission,
    reason: 'the client left',
    end(reason: string) {
      connection.reason = reason;
      left.resolve();
    },
  };
  await new ConnectionRegistry(new ForgetfulAdmissionControl(), trail).register(connection, '192.0.2.7', left.promise);
  expect(trail.ends).toEqual(['Your SSH key was removed.']);
});

describe('room for connections', () => {
  const admitAll = Object.assign(new ForgetfulAdmissionControl(), { revoked: () => Promise.resolve(new Map()) });
  const open = Promise.withResolvers<void>().promise;

  /** Lets in as many of this team as there is room for, each another user, up to so many; returns how many came in. */
  function fill(registry: ConnectionRegistry, teamId: string, atMost = 100): number {
    for (let count = 0; count < atMost; count += 1) {
      const admission = admissionOf({ teamId });
      if (registry.refusalOf(admission)) return count;
      const connection: AuthenticatedConnection = { admission, reason: '', end: () => undefined };
      void registry.register(connection, '192.0.2.7', open);
    }
    return atMost;
  }

  it('a team has no more than its limit, whatever the number of its users', () => {
    const registry = new ConnectionRegistry(admitAll, new Trail(), { connections: 50, connectionsOfTeam: 5 });
    const team = newId();
    expect(fill(registry, team)).toBe(5);
    expect(registry.refusalOf(admissionOf({ teamId: team }))).toMatch(/^Your team has 5 open connections to its pods/);
    expect(registry.refusalOf(admissionOf())).toBeNull();
  });

  it('teams that take all they can leave room for others, the less the fuller it is', () => {
    const registry = new ConnectionRegistry(admitAll, new Trail(), { connections: 100, connectionsOfTeam: 40 });
    const shares = Array.from({ length: 6 }, () => fill(registry, newId()));
    expect(shares).toEqual([40, 30, 15, 8, 4, 2]);
  });
});
