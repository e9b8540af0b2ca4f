import type { BilledVolume } from '@atoll/contracts/billing';
import type { Pace } from '@atoll/waiting';
import type { VolumeDetails } from './fact-details.js';
import type { JsonWriter } from './json-writer.js';
import { unitHoursOf } from './rated-usage.js';
import type { ReportSheet } from './report-sheet.js';
import type { Group } from './report-usage.js';
import type { ShownGroup } from './rounding-tree.js';
import type { ResourceLine } from './unrated-usage.js';

export async function writeVolume(
  writer: JsonWriter,
  sheet: ReportSheet,
  volume: Group<ResourceLine> & ShownGroup,
  details: VolumeDetails | undefined,
  pace: Pace,
): Promise<void> {
  const head: Omit<BilledVolume, 'total_cost' | 'intervals'> = {
    volume_id: volume.id.replace(/^shared_storage:/, ''),
    name: details?.name ?? null,
    region_id: details?.regionId ?? null,
    used_size_in_gb: details?.usedSizeInGb ?? null,
    gb_hours: await unitHoursOf(volume.lines, pace),
  };
  writer.startObject(head);
  await sheet.writeCosts(writer, volume, pace);
  writer.text('}');
}
