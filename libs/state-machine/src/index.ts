export { defineMachine } from './definition.js';
export type { EventOf, MachineDefinition, StateOf, StateRule, TransientRule } from './definition.js';
export { DurableMachine } from './durable-machine.js';
export type { Outcome, Passage, StepContext } from './outcome.js';
export { createHistoryTable, dropHistoryTable, MachineHistory } from './history.entity.js';
export { causeOf, MachineIndexes, MachineRow } from './machine-row.js';
export type { Cause, MachineError } from './machine-row.js';
export type { Machine } from './machine-table.js';
export { MachineDeskModule } from './machine-desk.module.js';
export {
  addFailedIndex,
  addLanes,
  addParkedRetriedIndex,
  addRestIndexes,
  dropFailedIndex,
  dropLanes,
  dropParkedRetriedIndex,
  dropRestIndexes,
  dueIndex,
  machineColumns,
} from './machine-migrations.js';
export { MachineWorker } from './machine-worker.js';
export type { WorkerOptions } from './worker-options.js';
export { MachineWorkers } from './machine-workers.js';
export { StepFailed } from './step-failed.js';
export { touchRows } from './touch-rows.js';
