import { setImmediate as nextTurn } from 'node:timers/promises';
import { figures, type Figure } from './averages.js';
import { seriesOf } from './metrics-source.js';
import { figureLabel, spanLabel, subscriptionLabel } from './page-query.js';

/** Characters that are parsed before other work of the process has its turn: about a millisecond. */
const sliceLength = 64 * 1024;
const maxEnvelopeLength = 64 * 1024;

/** The figure of a subscription, or of a GPU or MIG instance in a span. Undefined: there is no sample. */
export type ValueOf = (
  figure: Figure,
  of: { place: string; gpuUuid: string; gpuInstanceId: number | null } | string,
) => number | undefined;

/**
 * Reads the answer of `/api/v1/query` to a `pageQuery`; null where it is not such an answer. It is parsed in slices, so
 * that a large one holds up nobody. Values are text there; `NaN` and `+Inf` are no values, and neither is anything else
 * that is not understood.
 */
export async function valuesOfAnswer(text: string): Promise<ValueOf | null> {
  const start = /"result"\s*:\s*\[/.exec(text);
  if (!start) return null;
  const values = new Map<string, number>();
  let at = start.index + start[0].length;
  let pauseAt = at + sliceLength;
  for (;;) {
    while (at < text.length && ' \t\r\n,'.includes(text.charAt(at))) at += 1;
    if (at >= text.length) return null;
    if (text.charAt(at) === ']') break;
    const end = endOfElement(text, at);
    keepValue(values, parsed(text.slice(at, end)));
    at = end;
    if (at < pauseAt) continue;
    await nextTurn();
    pauseAt = at + sliceLength;
  }
  if (start.index + text.length - at > maxEnvelopeLength) return null;
  const envelope = parsed(text.slice(0, start.index + start[0].length) + text.slice(at));
  const data = isRecord(envelope) && envelope.status === 'success' ? envelope.data : null;
  if (!isRecord(data) || data.resultType !== 'vector') return null;
  return (figure, of) =>
    values.get(typeof of === 'string' ? keyOf(figure, '', of) : keyOf(figure, of.place, seriesOf(of)));
}

/** Where the element of a JSON list that begins at `start` ends. */
function endOfElement(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (character === '"') at = endOfString(text, at);
    else if (character === '{' || character === '[') depth += 1;
    else if (character === '}' || character === ']') depth -= 1;
    if (depth < 0 || (depth === 0 && character === ',')) return at;
  }
  return text.length;
}

/** Where the quotation mark is that ends the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text.charAt(at) !== '"') at += text.charAt(at) === '\\' ? 2 : 1;
  return at;
}

function keepValue(values: Map<string, number>, series: unknown): void {
  if (!isRecord(series) || !isRecord(series.metric) || !Array.isArray(series.value)) return;
  const { metric } = series;
  const label = (name: string) => (typeof metric[name] === 'string' ? metric[name] : '');
  const figure = figures.find((name) => name === label(figureLabel));
  const [, value] = series.value as unknown[];
  if (!figure || typeof value !== 'string' || value === '' || !Number.isFinite(Number(value))) return;
  const instance = label('GPU_I_ID');
  const of =
    figure === 'cpu_usage'
      ? label(subscriptionLabel)
      : seriesOf({ gpuUuid: label('UUID'), gpuInstanceId: instance === '' ? null : Number(instance) });
  values.set(keyOf(figure, label(spanLabel), of), Number(value));
}

function keyOf(figure: Figure, place: string, of: string): string {
  return `${figure} ${place} ${of}`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
