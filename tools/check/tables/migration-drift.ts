import { migrationDrift } from '@atoll/database';
import { checkTables, type Migrated } from './migrated.js';

/** What the newest state of the migrations would still lack for the entities. */
export async function drift({ service, dataSource }: Migrated): Promise<string[]> {
  return (await migrationDrift(dataSource)).map((statement) => `${service.name}: the migrations lack\n  ${statement}`);
}

/** Of the services that are named on the command line; of all, where none is. */
if (import.meta.main) await checkTables([drift], process.argv.slice(2));
