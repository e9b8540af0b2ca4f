import type { DataSource } from 'typeorm';
import type { StreamState, UnsignedCut } from './courier.js';

/**
 * Remembers in the service's schema where the stream stood when the service first ran a release that checks signatures.
 */
export class FirstUnsignedCut implements UnsignedCut {
  constructor(private readonly dataSource: DataSource) {}

  async upTo({ created, lastSequence }: StreamState): Promise<number> {
    await this.dataSource.query(
      'INSERT INTO unsigned_event_cut (stream_created, last_sequence) VALUES ($1, $2) ON CONFLICT (is_only_row) DO NOTHING',
      [created, lastSequence],
    );
    const rows = await this.dataSource.query<{ up_to: number }[]>(
      'SELECT last_sequence::float8 AS up_to FROM unsigned_event_cut WHERE stream_created = $1',
      [created],
    );
    // A stream that was created later never held an event of an older release.
    return rows[0]?.up_to ?? 0;
  }
}
