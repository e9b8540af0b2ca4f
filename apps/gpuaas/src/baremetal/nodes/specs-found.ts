import type { BaremetalDifference, BaremetalFindings } from '@atoll/contracts/gpuaas';
import type { BaremetalNodeEntity } from '../../model/baremetal-node.entity.js';

/** What a kernel keeps to itself, and GB for GiB: figures of memory this close are the same. */
const memoryTolerance = 0.1;

type Declared = Pick<BaremetalNodeEntity, 'gpuModel' | 'gpuCount' | 'cpuCores' | 'memoryGb'>;

/** Differences between the specs found and declared. Specs that the host has no tool for are not compared. */
export function differencesOf(declared: Declared, found: BaremetalFindings): BaremetalDifference[] {
  const { gpuModel, gpuCount, cpuCores, memoryGb } = declared;
  const rows: [string, string | number, string | number | null, boolean][] = [
    [
      'gpu_model',
      gpuModel ?? 'none',
      found.gpu_model,
      gpuModel !== null && namesModel(found.gpu_model ?? '', gpuModel),
    ],
    ['gpu_count', gpuCount, found.gpu_count, found.gpu_count === gpuCount],
    ['cpu_cores', cpuCores, found.cpu_cores, found.cpu_cores === cpuCores],
    ['memory_gb', memoryGb, found.memory_gb, Math.abs((found.memory_gb ?? 0) / memoryGb - 1) <= memoryTolerance],
  ];
  return rows.flatMap(([field, wanted, had, isSame]) =>
    had === null || isSame ? [] : [{ field, declared: String(wanted), found: String(had) }],
  );
}

/** Whether `NVIDIA H100 80GB HBM3` is an `H100-80GB`: it has each part of the name. */
function namesModel(product: string, model: string): boolean {
  const words = new Set(product.toLowerCase().split(/[^a-z0-9]+/));
  return model
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(Boolean)
    .every((part) => words.has(part));
}

export function sentenceOf(differences: readonly BaremetalDifference[]): string {
  const phrases = differences.map(({ field, declared, found }) => `${field} is ${found}, declared ${declared}`);
  return `The host differs from its specs: ${phrases.join('; ')}. Accept it, or register it anew.`;
}

export function sameFindings(one: BaremetalFindings | null, other: BaremetalFindings): boolean {
  return one !== null && (Object.keys(other) as (keyof BaremetalFindings)[]).every((name) => one[name] === other[name]);
}
