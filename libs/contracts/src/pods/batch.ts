import { contract, operation } from '../contract.js';
import { TeamPath } from '../team-path.js';
import { ExposedServiceList } from './exposed-service.js';

/** What the compatibility mount needs of many pods at once. */
export const podBatches = contract('pods.batches', {
  /** The exposed services of all pods of a team. */
  exposed: operation(TeamPath, ExposedServiceList),
});
