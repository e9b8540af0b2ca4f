import { type CallContext } from '@atoll/contracts';
import {
  terminals,
  type LocateTerminal,
  type OpenTerminal,
  type TerminalPlace,
  type TerminalTicket,
} from '@atoll/contracts/pods';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { TerminalsService } from './terminal.service.js';

@Controller()
export class TerminalsController implements Handlers<typeof terminals> {
  constructor(private readonly terminals: TerminalsService) {}

  @Handle(terminals.open)
  open(input: OpenTerminal, context: CallContext): Promise<TerminalTicket> {
    return this.terminals.open(input, context);
  }

  @Handle(terminals.locate)
  locate(input: LocateTerminal): Promise<TerminalPlace> {
    return Promise.resolve(this.terminals.locate(input));
  }
}
