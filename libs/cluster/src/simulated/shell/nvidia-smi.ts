import type { PodSlice } from '../../objects.js';
import type { Program, ShownPod } from './simulated-process.js';

const mibPerGb = 1_024;
const width = 89;
/** `1g.10gb`. A share by MPS or by time is no device of its own. */
const migProfile = /^\d+g\.\d+gb/;

/** The slices of the pod, in the form of NVIDIA's program. No figure is measured. */
export const nvidiaSmi: Program = async ({ pod, words, print, complain }) => {
  const [option, ...more] = words;
  if (more.length > 0 || (option !== undefined && option !== '-L')) {
    await complain('nvidia-smi is simulated here: it takes -L or nothing.\n');
    return 2;
  }
  if (pod.slices.length === 0) {
    await print('No devices were found\n');
    return 6;
  }
  await print(option === '-L' ? list(pod) : table(pod));
  return 0;
};

function list({ slices }: ShownPod): string {
  const byGpu = [...Map.groupBy(slices, ({ gpuUuid }) => gpuUuid)];
  return byGpu
    .flatMap(([uuid, onGpu], index) => [
      `GPU ${index}: ${onGpu[0]?.board ?? ''} (UUID: ${uuid})\n`,
      ...onGpu.filter(({ profile }) => migProfile.test(profile)).map(instanceLine),
    ])
    .join('');
}

function instanceLine({ profile, instanceUuid }: PodSlice, index: number): string {
  return `  MIG ${profile.padEnd(16)} Device ${String(index).padStart(2)}: (UUID: ${instanceUuid ?? 'simulated'})\n`;
}

function table({ slices }: ShownPod): string {
  const rule = `+${'-'.repeat(width - 2)}+`;
  const row = (text: string) => `| ${text.padEnd(width - 4)} |`;
  const rows = slices.map(({ board, gpuUuid, profile }, index) => {
    const memory = `0MiB / ${memoryGbOf({ board, profile }) * mibPerGb}MiB`;
    return row(
      `${String(index).padStart(3)}  ${board.padEnd(26)} ${profile.padEnd(12)} ${memory.padEnd(22)} ${gpuUuid.slice(0, 12)}`,
    );
  });
  const head = row(`${'GPU'.padEnd(4)} ${'Name'.padEnd(26)} ${'Slice'.padEnd(12)} ${'Memory-Usage'.padEnd(22)} UUID`);
  return [rule, row('NVIDIA-SMI (simulated: no figure is measured)'), rule, head, rule, ...rows, rule, ''].join('\n');
}

/**
 * In GB: what the name of a MIG profile says, `1g.10gb`; otherwise that of the board, `A100-80GB`. 0: neither says it.
 */
function memoryGbOf({ board, profile }: Pick<PodSlice, 'board' | 'profile'>): number {
  return Number(/(\d+)gb$/i.exec(profile)?.[1] ?? /(\d+)\s?GB/i.exec(board)?.[1] ?? 0);
}
