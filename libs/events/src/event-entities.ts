import { DeadLetter } from './dead-letter.entity.js';
import { InboxRow } from './inbox.entity.js';
import { OutboxRow } from './outbox.entity.js';

/**
 * The entities of this library, for each service. They bring the migrations by which released tables follow the
 * library.
 */
export const eventEntities = [OutboxRow, InboxRow, DeadLetter];
