import { databaseNowMs } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { PodsSettings } from '../pods-settings.js';

/** The clock with which every replica compares what is stored: their own may differ, or be set back. */
@Injectable()
export class DatabaseClock {
  constructor(
    private readonly dataSource: DataSource,
    private readonly settings: PodsSettings,
  ) {}

  /** Epoch milliseconds. */
  async nowMs(): Promise<number> {
    return this.settings.now?.() ?? databaseNowMs(this.dataSource.manager);
  }
}
