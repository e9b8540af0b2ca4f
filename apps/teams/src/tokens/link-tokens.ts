import { DerivedTokens } from '@atoll/api-keys';
import { newId } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { TeamsSettings } from '../teams-settings.js';

const linkHours = 24;

export interface NewLink {
  userId: string;
  email: string;
  /** Of an invitation. */
  teamId?: string;
  /** Whether whoever uses it has shown that the address is theirs: it went there by mail, or the operator says so. */
  isProof: boolean;
  /** Whether its use removes the second factors of the user, who has lost them. */
  removesFactors?: boolean;
  /** Whether the start of a process makes it, and prints it. */
  isByStart?: boolean;
  /**
   * Which unused links it replaces, of the same invitation or for the password: all by default. At the start of a
   * process, which is nobody's decision, those of the operator that remove second factors stay good. None if anybody
   * may ask for it: otherwise whoever knows the address could end each link of its user.
   */
  replaces?: 'all' | 'all but removals' | 'none';
}

export interface IssuedLink {
  id: string;
  url: string;
  expires_at: string;
}

/** One-time links as rows, and the addresses that follow from them. */
@Injectable()
export class LinkTokens {
  private readonly tokens: DerivedTokens;

  constructor(private readonly settings: TeamsSettings) {
    this.tokens = new DerivedTokens(settings.keyPepper, 'one-time link');
  }

  /** The address of the page, with the token where no server sees it. */
  urlOf(id: string): string {
    return `${this.settings.publicUrl}/link#${this.tokens.make(id)}`;
  }

  /** The id of the link; undefined for what this server never made. */
  read(token: string): string | undefined {
    return this.tokens.read(token)?.id;
  }

  /** Within a transaction: a new link, in place of those that it replaces. */
  async issue(
    manager: EntityManager,
    { userId, email, teamId, isProof, removesFactors = false, isByStart = false, replaces = 'all' }: NewLink,
  ): Promise<IssuedLink> {
    if (replaces !== 'none')
      await this.retire(manager, userId, teamId ?? null, { leavesRemovals: replaces === 'all but removals' });
    const id = newId();
    const [row] = await manager.query<{ expires_at: Date }[]>(
      `INSERT INTO one_time_link (id, user_id, email, team_id, is_proof, removes_factors, is_by_start, expires_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, now() + interval '${linkHours} hours') RETURNING expires_at`,
      [id, userId, email, teamId ?? null, isProof, removesFactors, isByStart],
    );
    if (!row) throw new Error('The link was not stored.');
    return { id, url: this.urlOf(id), expires_at: row.expires_at.toISOString() };
  }

  /** Within a transaction: links of invitations to one team, in place of those of before, in two statements. */
  async invite<Person extends { userId: string; email: string }>(
    manager: EntityManager,
    people: readonly Person[],
    { teamId, isProof, issuedByOwner }: { teamId: string; isProof: boolean; issuedByOwner: boolean },
  ): Promise<(Person & IssuedLink)[]> {
    if (people.length === 0) return [];
    const userIds = people.map(({ userId }) => userId);
    await manager.query(
      'UPDATE one_time_link SET used_at = now() WHERE user_id = ANY ($1::uuid[]) AND team_id = $2 AND used_at IS NULL',
      [userIds, teamId],
    );
    const ids = people.map(() => newId());
    const [row] = await manager.query<{ expires_at: Date }[]>(
      `INSERT INTO one_time_link (id, user_id, email, team_id, is_proof, issued_by_owner, expires_at)
       SELECT id, user_id, email, $4, $5, $6, now() + interval '${linkHours} hours' FROM unnest($1::uuid[], $2::uuid[], $3::text[]) link (id, user_id, email)
       RETURNING expires_at`,
      [ids, userIds, people.map(({ email }) => email), teamId, isProof, issuedByOwner],
    );
    if (!row) throw new Error('The links were not stored.');
    const expires_at = row.expires_at.toISOString();
    return people.map((person, at) => ({ ...person, id: ids[at] ?? '', url: this.urlOf(ids[at] ?? ''), expires_at }));
  }

  /**
   * Links that were not used yet are not good any more: those of an invitation, or those for the password. Mail with
   * one for the password that was asked for, and not sent yet, goes to nobody. It is deleted first: that waits for a
   * sender that is creating a link, so that the link is found too.
   */
  async retire(
    manager: EntityManager,
    userId: string,
    teamId: string | null,
    { leavesRemovals = false } = {},
  ): Promise<void> {
    if (teamId === null) {
      const ofUser = `address = (SELECT email FROM "user" WHERE id = $1)`;
      await manager.query(`DELETE FROM mail WHERE kind = 'reset' AND ${ofUser}`, [userId]);
    }
    await manager.query(
      `UPDATE one_time_link SET used_at = now()
       WHERE user_id = $1 AND team_id IS NOT DISTINCT FROM $2::uuid AND used_at IS NULL AND NOT (removes_factors AND $3)`,
      [userId, teamId, leavesRemovals],
    );
  }

  /** Ends links of an invitation that somebody who never was team_owner was shown. Nobody is shown one that proves. */
  async retireUnlessIssuedByOwner(
    manager: EntityManager,
    { userId, teamId }: { userId: string; teamId: string },
  ): Promise<void> {
    await manager.query(
      `UPDATE one_time_link SET used_at = now()
       WHERE user_id = $1 AND team_id = $2 AND used_at IS NULL AND NOT is_proof AND NOT issued_by_owner`,
      [userId, teamId],
    );
  }
}
