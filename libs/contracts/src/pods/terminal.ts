import { IntersectionType } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { Instant, Text, WholeNumber } from '../fields.js';
import { PodPath } from './pod.js';

/** Subprotocol of a terminal's WebSocket (RFC 6455), offered beside the ticket. */
export const terminalProtocol = 'atoll.v1';

/** Largest width and height of a terminal, characters. */
export const terminalSizeLimit = 1_000;

const ticketForm = /^v1(?:\.[A-Za-z0-9_-]+){2}$/;

export class OpenTerminalBody {
  @WholeNumber({ min: 1, max: terminalSizeLimit, example: 120, description: 'Width of the terminal, characters.' })
  columns!: number;

  @WholeNumber({ min: 1, max: terminalSizeLimit, example: 40, description: 'Height of the terminal, characters.' })
  rows!: number;
}

export class OpenTerminal extends IntersectionType(PodPath, OpenTerminalBody) {}

const ticketField = {
  max: 1_000,
  pattern: ticketForm,
  patternHint: 'the ticket of a terminal, as it was answered',
  example: 'v1.k1.bm9uY2U',
  description: 'Opens one WebSocket at this path, once: offer it as a subprotocol beside `atoll.v1`.',
};

export class TerminalTicket {
  @Text(ticketField)
  ticket!: string;

  @Instant({ description: 'Instant at which the ticket expires: 30 s after its creation.' })
  expires_at!: string;
}

export class LocateTerminal extends PodPath {
  @Text(ticketField)
  ticket!: string;
}

/** Where the replica listens that holds a ticket. */
export class TerminalPlace {
  @Text({ max: 253 })
  host!: string;

  @WholeNumber({ min: 1, max: 65_535 })
  port!: number;
}

/** Terminals in pods. `locate` is asked by the gateway alone, acting as itself. */
export const terminals = contract('pods.terminals', {
  open: operation(OpenTerminal, TerminalTicket),
  locate: operation(LocateTerminal, TerminalPlace),
});
