import { type CallContext } from '@atoll/contracts';
import {
  deadLetters,
  type DeadLetterPage,
  type DeadLettersOfService,
  type FailedEvent,
  type ListDeadLetters,
} from '@atoll/contracts/operator';
import type { Rpc } from '@atoll/rpc';
import { platformServices } from '@atoll/service-names';
import { askEach } from './ask-each.js';

const defaultLimit = 20;

/** A page of the dead letters of all services: each is asked for as many as the page has. */
export async function listDeadLetters(
  rpc: Rpc,
  { service, ...asked }: ListDeadLetters,
  context: CallContext,
): Promise<DeadLetterPage> {
  const { answers, services } = await askEach(service ? [service] : platformServices, context, (name, hasty) =>
    rpc.call(deadLetters(name).list, asked, hasty),
  );
  return { ...pageOf(answers, asked.limit ?? defaultLimit), services };
}

function pageOf(answers: readonly DeadLettersOfService[], limit: number): DeadLettersOfService {
  const all = answers.flatMap(({ data }) => data).toSorted((one, other) => (isBefore(one, other) ? -1 : 1));
  const data = all.slice(0, limit);
  const last = data.at(-1);
  const hasMore = all.length > limit || answers.some(({ next_cursor }) => next_cursor !== null);
  return { data, next_cursor: hasMore && last ? last.cursor : null };
}

/** As the services order them: the latest failure first, then the greater id. */
function isBefore(one: FailedEvent, other: FailedEvent): boolean {
  const [micros, id] = placeOf(one);
  const [otherMicros, otherId] = placeOf(other);
  return micros === otherMicros ? id > otherId : micros > otherMicros;
}

function placeOf({ cursor }: FailedEvent): [micros: number, id: string] {
  const [micros = '', id = ''] = cursor.split('_');
  return [Number(micros), id];
}
