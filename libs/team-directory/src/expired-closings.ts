import { Removals, Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';

const batchSize = 1_000;

/** Those for ever stay. Replicas do not wait for each other. */
const removalOf = (kind: 'team' | 'workspace'): string => `DELETE FROM ${kind}_closing WHERE ${kind}_id IN (
    SELECT ${kind}_id FROM ${kind}_closing WHERE until < clock_timestamp() - interval '1 day' LIMIT $1 FOR UPDATE SKIP LOCKED
  ) RETURNING ${kind}_id`;

/**
 * Removes closings of teams and workspaces a day after they have expired, for services with a `TeamDeletionAnswers`.
 * Needs the tables of `createClosingTables`.
 */
@Injectable()
export class ExpiredClosings extends Removals {
  constructor(private readonly statements: Statements) {
    super('expired closings of teams and workspaces');
  }

  override async removeSome(): Promise<boolean> {
    const teams = await this.statements.query(removalOf('team'), [batchSize]);
    const workspaces = await this.statements.query(removalOf('workspace'), [batchSize]);
    return teams.length === batchSize || workspaces.length === batchSize;
  }
}
