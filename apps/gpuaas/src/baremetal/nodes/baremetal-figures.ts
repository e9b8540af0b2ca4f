import type { INestMicroservice } from '@nestjs/common';
import { Statements } from '@atoll/database';
import type { ServiceFigure } from '@atoll/service';
import { maintenanceCodes } from '../../model/baremetal-node.entity.js';

/** Nodes that get no new tenant, by what put them into maintenance. */
export const nodesInMaintenance: ServiceFigure = {
  name: 'atoll_baremetal_nodes_in_maintenance',
  help: 'Bare-metal nodes in maintenance, by cause.',
  label: 'cause',
  values: maintenanceCodes,
  async read(app: INestMicroservice) {
    const rows = await app.get(Statements, { strict: false }).query<{ code: string; nodes: number }>(
      `SELECT maintenance_code AS code, count(*)::int AS nodes FROM baremetal_node
       WHERE is_maintenance AND maintenance_code IS NOT NULL AND state <> 'removed' GROUP BY maintenance_code`,
      [],
    );
    return Object.fromEntries(rows.map(({ code, nodes }) => [code, nodes]));
  },
};
