import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { poolOf } from './data-source.js';

/**
 * Connections of the service's pool that come and go. The next one may lead to another server: after a failover that
 * lost commits, rows that were read are not there, and their numbers are given to others.
 */
@Injectable()
export class ConnectionChanges {
  constructor(private readonly dataSource: DataSource) {}

  /** Clears a cache of committed rows when a connection is gone, and before a new one is used. */
  clear(cache: { clear(): void }): void {
    const pool = poolOf(this.dataSource);
    for (const change of ['connect', 'remove'] as const) pool.on(change, () => cache.clear());
  }
}
