import { maskApiKey } from '@atoll/api-keys';
import type { Caller, TeamRole } from '@atoll/contracts';
import type { MemberStatus, TeamMember } from '@atoll/contracts/teams';
import { databaseNowMs, newId } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { ApiKeysService } from '../api-keys/api-key.service.js';
import { settleTerms } from '../api-keys/key-terms.js';
import { MembershipEntity } from '../model/membership.entity.js';
import type { TeamEntity } from '../model/team.entity.js';

export interface Enrolled {
  userId: string;
  /** As it was sent; of no effect for one who is active. */
  name: string;
  /** `active` only for the caller: nobody else has accepted yet. */
  status: MemberStatus;
  role: TeamRole;
}

/** Makes users members of a team, each with a key to it. */
@Injectable()
export class Enrolment {
  constructor(private readonly apiKeys: ApiKeysService) {}

  /** The keys in full, by user: the one time that they are known. `caller` is shown them. */
  async enrol(
    manager: EntityManager,
    { id: teamId, requireSecondFactor }: TeamEntity,
    people: readonly Enrolled[],
    { issuedByOwner, caller }: { issuedByOwner: boolean; caller: Caller },
  ): Promise<Map<string, string>> {
    await manager.insert(
      MembershipEntity,
      people.map((person) => ({
        id: newId(),
        teamId,
        ...person,
        requiredFactorAtJoin: person.status === 'active' ? requireSecondFactor : null,
      })),
    );
    const { expiryDate } = settleTerms({}, await databaseNowMs(manager));
    const keys = await this.apiKeys.issue(
      manager,
      people.map(({ userId }) => ({ userId, teamId, expiryDate, ipWhitelist: '', issuedByOwner })),
      { caller },
    );
    return new Map(people.map(({ userId }, index) => [userId, keys[index] ?? '']));
  }
}

/** The caller accepts by making the call; another holder of this person's key does not accept for them. */
export function statusOf(caller: Caller, userId: string): MemberStatus {
  return caller.kind === 'user' && caller.scope === 'user' && caller.userId === userId ? 'active' : 'invited';
}

/** What is kept of an answer that shows a key, and the link of an invitation. */
export function withMaskedKey({ invitation, ...member }: TeamMember): TeamMember {
  const kept = invitation && { invitation: { ...invitation, url: null } };
  return { ...member, api_key: member.api_key && maskApiKey(member.api_key), ...kept };
}
