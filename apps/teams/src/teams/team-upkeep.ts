import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { TeamDeletionService } from './team-deletion.service.js';

const everyMs = 15_000;

/** Looks after deletions that were abandoned, at boot and from then on. */
@Injectable()
export class TeamUpkeep implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(TeamUpkeep.name);
  private timer?: NodeJS.Timeout;
  private running: Promise<void> = Promise.resolve();

  constructor(private readonly deletion: TeamDeletionService) {}

  async onApplicationBootstrap(): Promise<void> {
    await this.look();
    this.timer = setInterval(() => void (this.running = this.look()), everyMs).unref();
  }

  async onModuleDestroy(): Promise<void> {
    clearInterval(this.timer);
    await this.running;
  }

  private async look(): Promise<void> {
    try {
      await this.deletion.callOffAbandoned();
    } catch (error) {
      this.logger.warn(`Abandoned deletions could not be looked after: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}
