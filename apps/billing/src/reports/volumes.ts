import type { BilledVolume } from '@atoll/contracts';
import { Json } from '@atoll/rpc';
import type { VolumeDetails } from './fact-details.js';
import { unitHoursOf } from './rated-usage.js';
import type { ReportSheet } from './report-sheet.js';
import type { Group, ResourceLine } from './report-usage.js';
import type { ShownGroup } from './rounding-tree.js';

export function volumeOf(
  group: Group<ResourceLine> & ShownGroup,
  details: VolumeDetails | undefined,
  sheet: ReportSheet,
): Json<BilledVolume> {
  return Json.object<BilledVolume>({
    volume_id: group.id.replace(/^shared_storage:/, ''),
    name: details?.name ?? null,
    region_id: details?.regionId ?? null,
    used_size_in_gb: details?.usedSizeInGb ?? null,
    gb_hours: unitHoursOf(group.lines),
    ...sheet.costs(group),
  });
}
