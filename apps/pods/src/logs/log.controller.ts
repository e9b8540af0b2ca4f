import { type CallContext } from '@atoll/contracts';
import { podLogs, type PodLogPage, type ReadPodLogs } from '@atoll/contracts/pods';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { LogsService } from './log.service.js';

@Controller()
export class LogsController implements Handlers<typeof podLogs> {
  constructor(private readonly logs: LogsService) {}

  @Handle(podLogs.read)
  read(input: ReadPodLogs, context: CallContext): Promise<PodLogPage> {
    return this.logs.read(input, context);
  }
}
