import { messageOf } from '@atoll/errors';
import { Rounds } from '@atoll/waiting';
import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { TeamsSettings } from '../teams-settings.js';
import { ForcedDeletionService } from './forced-deletion.service.js';
import { TeamDeletionService } from './team-deletion.service.js';

const batch = 100;
/** After a look that failed, so that a fault that lasts is not logged each second. */
const pauseMs = 5_000;

/**
 * Looks after deletions: calls off those that were abandoned, and goes on with those that are forced. At boot and from
 * then on, in each replica.
 */
@Injectable()
export class TeamUpkeep implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(TeamUpkeep.name);
  private readonly rounds = new Rounds(async () => ((await this.look()) ? this.settings.upkeepMs : pauseMs));

  constructor(
    private readonly dataSource: DataSource,
    private readonly deletion: TeamDeletionService,
    private readonly forced: ForcedDeletionService,
    private readonly settings: TeamsSettings,
  ) {}

  onApplicationBootstrap(): void {
    this.rounds.start();
  }

  onModuleDestroy(): Promise<void> {
    return this.rounds.stop();
  }

  /**
   * Each deletion whose time has come; one that fails keeps no other from its turn. Throws nothing. Returns whether all
   * went well.
   */
  async look(): Promise<boolean> {
    let isFine = true;
    try {
      for (const { id, is_forced } of await this.due()) isFine = (await this.goOn(id, is_forced)) && isFine;
    } catch (error) {
      this.warn('Upkeep of deletions', error);
      isFine = false;
    }
    return isFine;
  }

  private due(): Promise<{ id: string; is_forced: boolean }[]> {
    return this.dataSource.query(
      `(SELECT id, false AS is_forced FROM team WHERE deletion_deadline < (SELECT clock_timestamp()) ORDER BY deletion_deadline LIMIT ${batch})
       UNION ALL
       (SELECT id, true FROM team WHERE forced_deletion_due_at < (SELECT clock_timestamp()) ORDER BY forced_deletion_due_at LIMIT ${batch})`,
    );
  }

  private async goOn(id: string, isForced: boolean): Promise<boolean> {
    try {
      await (isForced ? this.forced.goOn(id) : this.deletion.callOffAbandoned(id));
      return true;
    } catch (error) {
      this.warn(`The deletion of team ${id}`, error);
      return false;
    }
  }

  private warn(what: string, error: unknown): void {
    this.logger.warn(`${what} failed; retrying: ${messageOf(error)}`);
  }
}
