export {
  DeadLetterPage,
  DeadLetterPath,
  deadLetters,
  DeadLettersAfter,
  DeadLettersOfService,
  FailedEvent,
  ListDeadLetters,
  payloadExcerptLimit,
} from './dead-letter.js';
export {
  countedRowsLimit,
  ListProcesses,
  ListProcessesQuery,
  type MachineKind,
  MachinePath,
  MachineProcess,
  machines,
  MachineState,
  MachineStates,
  MachineStatesOfService,
  ProcessPage,
} from './machine.js';
export { machineServices, type MachineService, ServiceAnswer } from './services.js';
