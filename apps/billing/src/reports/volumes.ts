import type { BilledVolume } from '@atoll/contracts';
import { Json } from '@atoll/rpc';
import { unitHoursOf } from './rated-usage.js';
import type { ReportSheet } from './report-sheet.js';
import type { Group, ResourceLine } from './report-usage.js';
import { latestNumber, latestText, type Told } from './resources.js';
import type { ShownGroup } from './rounding-tree.js';

/** A volume, by what was told of it last. */
export function volumeOf(group: Group<ResourceLine> & ShownGroup, told: readonly Told[], sheet: ReportSheet): Json<BilledVolume> {
  const timelineNos = new Set(group.lines.map(({ timeline }) => timeline.no));
  const toldOfIt = told.filter(({ timelineNo }) => timelineNos.has(timelineNo));
  const region = latestNumber(toldOfIt, 'region_id');
  return Json.object<BilledVolume>({
    volume_id: group.id.replace(/^shared_storage:/, ''),
    name: latestText(toldOfIt, 'resource_name'),
    region_id: region === null ? null : String(region),
    used_size_in_gb: latestNumber(toldOfIt, 'used_size_in_gb'),
    gb_hours: unitHoursOf(group.lines),
    ...sheet.costs(group),
  });
}
