import { figures, type Figure, type Sample, type SamplesOf } from './averages.js';
import { figureLabel, subscriptionLabel } from './page-query.js';

/**
 * The samples in the answer of `/api/v1/query_range` to a `pageQuery`; null where it is no such answer. Values are strings there, and `NaN`
 * and `+Inf` are none. What it does not understand within the answer is as if it were not there.
 */
export function samplesOfAnswer(answer: unknown): SamplesOf | null {
  const data = isRecord(answer) && answer.status === 'success' ? answer.data : null;
  if (!isRecord(data) || data.resultType !== 'matrix' || !Array.isArray(data.result)) return null;
  const samples = new Map<string, Sample[]>();
  for (const series of data.result as unknown[]) {
    if (!isRecord(series) || !isRecord(series.metric) || !Array.isArray(series.values)) continue;
    const figure = figures.find((name) => isRecord(series.metric) && name === series.metric[figureLabel]);
    if (figure) samples.set(key(figure, nameOf(figure, series.metric)), series.values.flatMap(sampleOf));
  }
  return (figure, series) => samples.get(key(figure, series)) ?? [];
}

function nameOf(figure: Figure, labels: Readonly<Record<string, unknown>>): string {
  const text = (label: string) => (typeof labels[label] === 'string' ? labels[label] : '');
  if (figure === 'cpu_usage') return text(subscriptionLabel);
  return text('GPU_I_ID') ? `${text('UUID')}/${text('GPU_I_ID')}` : text('UUID');
}

function sampleOf(pair: unknown): Sample[] {
  if (!Array.isArray(pair)) return [];
  const [atS, value] = pair as unknown[];
  if (typeof atS !== 'number' || typeof value !== 'string' || value === '') return [];
  const percent = Number(value);
  return Number.isFinite(percent) ? [{ atMs: Math.round(atS * 1000), percent }] : [];
}

function key(figure: Figure, series: string): string {
  return `${figure} ${series}`;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
