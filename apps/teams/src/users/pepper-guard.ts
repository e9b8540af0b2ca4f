import { onceAvailable, Transactions } from '@atoll/database';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { TeamsSettings } from '../teams-settings.js';
import { lockAdministrators, notePepper } from './admin-key.js';

/**
 * Ends a start under another pepper than that of the platform's keys, before the service takes a request: it would make
 * keys, links and sessions under it.
 */
@Injectable()
export class PepperGuard implements OnModuleInit {
  constructor(
    private readonly transactions: Transactions,
    private readonly settings: TeamsSettings,
  ) {}

  async onModuleInit(): Promise<void> {
    await onceAvailable(() =>
      this.transactions.run(async (manager) => {
        await lockAdministrators(manager);
        await notePepper(manager, this.settings.keyPepper);
      }),
    );
  }
}
