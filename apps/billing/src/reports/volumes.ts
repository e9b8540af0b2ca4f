import type { BilledVolume } from '@atoll/contracts';
import { unitHoursOf } from './rated-usage.js';
import { costsOf, type Frame, type Group } from './report-shapes.js';
import type { ResourceLine } from './report-usage.js';
import { latestNumber, latestText, type Told } from './resources.js';
import type { ShownGroup } from './rounding-tree.js';

/** Volumes, by what was told of them last. */
export function volumesOf(
  frames: readonly Frame[],
  groups: readonly (Group<ResourceLine> & ShownGroup)[],
  told: readonly Told[],
): BilledVolume[] {
  return groups.map((group) => {
    const timelineNos = new Set(group.lines.map(({ timeline }) => timeline.no));
    const toldOfIt = told.filter(({ timelineNo }) => timelineNos.has(timelineNo));
    const region = latestNumber(toldOfIt, 'region_id');
    return {
      volume_id: group.id.replace(/^shared_storage:/, ''),
      name: latestText(toldOfIt, 'resource_name'),
      region_id: region === null ? null : String(region),
      used_size_in_gb: latestNumber(toldOfIt, 'used_size_in_gb'),
      gb_hours: unitHoursOf(group.lines),
      ...costsOf(frames, group),
    };
  });
}
