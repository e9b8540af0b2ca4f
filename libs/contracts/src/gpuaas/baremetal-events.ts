import { event } from '../contract.js';
import { Instant, OneOf, Revision, Text } from '../fields.js';
import { NumberedId, Uuid } from '../id-fields.js';
import { baremetalStatuses, type BaremetalStatus } from './baremetal.js';

export class BaremetalChanged {
  @Uuid()
  instance_id!: string;

  @Revision(0)
  revision!: number;

  @Uuid()
  team_id!: string;

  @Uuid()
  workspace_id!: string;

  @NumberedId({ nullable: true })
  region_id!: string | null;

  @Text({ max: 100 })
  name!: string;

  @OneOf('BaremetalStatus', baremetalStatuses)
  status!: BaremetalStatus;

  @Instant()
  created_at!: string;
}
/** A bare-metal instance was requested, or its status may have changed. Feeds `GET /instance`. */
export const baremetalChanged = event('gpuaas.baremetal_changed', BaremetalChanged);

export class BaremetalNodeSetAside {
  @NumberedId()
  node_id!: string;

  @Text({ max: 100 })
  name!: string;

  @OneOf('MaintenanceCode', ['failures', 'host_key_changed', 'clean_failed', 'reinstall'])
  code!: 'failures' | 'host_key_changed' | 'clean_failed' | 'reinstall';

  @Text({ max: 1_000 })
  reason!: string;
}
/** The platform has put a bare-metal node into maintenance. */
export const baremetalNodeSetAside = event('gpuaas.baremetal_node_set_aside', BaremetalNodeSetAside);
