import { OneOf, Text, WholeNumber } from '../fields.js';

const aGpuModel = {
  max: 64,
  example: 'H100-80GB',
  description: 'Model of the GPUs. The SKU has it in lower case, with `-` for what is no letter or digit.',
};
const gpuCount = { min: 0, max: 64, example: 8, description: 'Number of physical GPUs.' };
const cpuCores = { min: 1, max: 4_096, example: 128, description: 'Number of processors, as `nproc` counts them.' };
const memoryGb = { min: 1, max: 1_000_000, example: 1024, description: 'Main memory in GB.' };

class HostSize {
  @WholeNumber(gpuCount)
  gpu_count!: number;

  @WholeNumber(cpuCores)
  cpu_cores!: number;

  @WholeNumber(memoryGb)
  memory_gb!: number;
}

/** What a bare-metal host has. */
export class BaremetalSpecs extends HostSize {
  @Text({
    ...aGpuModel,
    optional: true,
    nullable: true,
    description: `${aGpuModel.description} Needed unless \`gpu_count\` is 0.`,
  })
  gpu_model?: string | null;
}

/** As `BaremetalSpecs`, in responses. */
export class BaremetalHostSpecs extends HostSize {
  @Text({ ...aGpuModel, nullable: true, description: 'Model of the GPUs; null where the host has none.' })
  gpu_model!: string | null;
}

/**
 * Requirements of a request: text matches ignoring case, a number means "at least", and omitted fields match anything.
 */
export class BaremetalRequirements {
  @Text({ ...aGpuModel, optional: true })
  gpu_model?: string;

  @WholeNumber({ ...gpuCount, optional: true })
  gpu_count?: number;

  @WholeNumber({ ...cpuCores, optional: true })
  cpu_cores?: number;

  @WholeNumber({ ...memoryGb, optional: true })
  memory_gb?: number;
}

/** Value that a check found on the host; null if the host has no tool for it. */
export class BaremetalFindings {
  @Text({ ...aGpuModel, max: 200, nullable: true })
  gpu_model!: string | null;

  @WholeNumber({ ...gpuCount, nullable: true })
  gpu_count!: number | null;

  @WholeNumber({ ...cpuCores, nullable: true })
  cpu_cores!: number | null;

  @WholeNumber({ ...memoryGb, nullable: true })
  memory_gb!: number | null;
}

export class BaremetalDifference {
  @OneOf('BaremetalSpec', ['gpu_model', 'gpu_count', 'cpu_cores', 'memory_gb'], {
    example: 'gpu_count',
    description: 'Name of the spec.',
  })
  field!: string;

  @Text({ max: 200, example: '8', description: 'Value that was declared.' })
  declared!: string;

  @Text({ max: 200, example: '7', description: 'Value that was found.' })
  found!: string;
}
