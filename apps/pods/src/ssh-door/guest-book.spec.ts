import { expect, it } from '@jest/globals';
import { newId } from '@atoll/database';
import { Doorkeeper, LogInTrail, type Admission } from './doorkeeper.js';
import { GuestBook } from './guest-book.js';

/** Lets everybody in and says afterwards that they may not stay. */
class ForgetfulDoorkeeper extends Doorkeeper {
  admit(): Promise<null> {
    return Promise.resolve(null);
  }

  admitUser(): Promise<null> {
    return Promise.resolve(null);
  }

  expelled(admissions: readonly Admission[]): Promise<ReadonlyMap<Admission, string>> {
    return Promise.resolve(new Map(admissions.map((admission) => [admission, 'Your SSH key was removed.'])));
  }
}

class Trail extends LogInTrail {
  readonly ends: string[] = [];

  began(): Promise<string> {
    return Promise.resolve('1');
  }

  ended(_logInId: string, reason: string): Promise<void> {
    this.ends.push(reason);
    return Promise.resolve();
  }
}

it('a guest whose key was removed between the admission and the log-in is out again, by no broadcast and no timer', async () => {
  const trail = new Trail();
  const left = Promise.withResolvers<void>();
  const admission: Admission = {
    podId: newId(),
    podName: 'train-abcde',
    teamId: newId(),
    userId: newId(),
    sshKeyId: newId(),
    fingerprint: 'SHA256:x',
    credential: null,
    run: null,
  };
  const guest = {
    admission,
    reason: 'the client left',
    end(reason: string) {
      guest.reason = reason;
      left.resolve();
    },
  };
  await new GuestBook(new ForgetfulDoorkeeper(), trail).enter(guest, '192.0.2.7', left.promise);
  expect(trail.ends).toEqual(['Your SSH key was removed.']);
});
