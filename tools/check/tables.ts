import { checkTables } from './migrated.js';
import { drift } from './migration-drift.js';
import { statementCheck } from './statements/statements.js';

/** What both checks of tables find, with one server and one run of the migrations. */
await checkTables([drift, statementCheck()]);
