import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface StoredSeries {
  name: string;
  labels: Readonly<Record<string, string>>;
  /** What is stored at this second; null where nothing is. */
  at: (atS: number) => string | null;
}

export interface FakePrometheus {
  url: string;
  series: StoredSeries[];
  requests: { method: string; path: string; authorization: string | undefined; form: URLSearchParams }[];
  /** Instead of what was asked for. */
  answer: ((response: ServerResponse) => void) | null;
  stop: () => Promise<void>;
}

/**
 * A server on the loopback address that evaluates as much of PromQL as a page's query has, over the series that are put
 * into it, each scraped once a minute.
 */
export async function startPrometheus(): Promise<FakePrometheus> {
  const server = createServer((request, response) => void serve(request, response));
  const fake: FakePrometheus = {
    url: '',
    series: [],
    requests: [],
    answer: null,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const { method = '', url: path = '', headers } = request;
    const form = new URLSearchParams(Buffer.concat(chunks).toString());
    fake.requests.push({ method, path, authorization: headers.authorization, form });
    if (fake.answer) fake.answer(response);
    else response.setHeader('content-type', 'application/json').end(JSON.stringify(evaluate(fake.series, form)));
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  fake.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return fake;
}

const kept = ['UUID', 'GPU_I_ID', 'atoll_subscription_id'];
const scrapeS = 60;

function evaluate(stored: readonly StoredSeries[], form: URLSearchParams): unknown {
  const nowS = Number(form.get('time'));
  const result = (form.get('query') ?? '').split(/ or (?=label_replace\()/).flatMap((part) => {
    const figure = /"atoll_figure", "(\w+)"/.exec(part)?.[1] ?? '';
    const place = /"atoll_span", "(\w+)"/.exec(part)?.[1] ?? '';
    const [sum, count, free] = selectorsOf(part, nowS);
    if (!sum || !count) throw new Error(`The fixture does not understand ${part}`);
    return [...Map.groupBy(stored.filter(sum.matches), groupOf)].flatMap(([group, members]) => {
      const total = sumOf(samplesOf(members, sum));
      const by = free
        ? total +
          sumOf(
            samplesOf(
              stored.filter(free.matches).filter((series) => groupOf(series) === group),
              free,
            ),
          )
        : samplesOf(
            stored.filter(count.matches).filter((series) => groupOf(series) === group),
            count,
          ).length;
      if (samplesOf(members, sum).length === 0) return [];
      const labels = kept.flatMap((name) => (members[0]?.labels[name] ? [[name, members[0].labels[name]]] : []));
      const metric = {
        ...(Object.fromEntries(labels) as object),
        atoll_figure: figure,
        ...(place && { atoll_span: place }),
      };
      return [{ metric, value: [nowS, text(((part.includes('100 * ') ? 100 : 1) * total) / by)] }];
    });
  });
  return { status: 'success', data: { resultType: 'vector', result } };
}

interface Selector {
  readonly matches: (series: StoredSeries) => boolean;
  readonly fromS: number;
  readonly untilS: number;
}

/** As Prometheus 2 does: both ends of a range belong to it. */
function samplesOf(members: readonly StoredSeries[], { fromS, untilS }: Selector): number[] {
  return members.flatMap(({ at }) => {
    const values: number[] = [];
    for (let atS = Math.ceil(fromS / scrapeS) * scrapeS; atS <= untilS; atS += scrapeS) {
      const value = at(atS);
      if (value !== null) values.push(number(value));
    }
    return values;
  });
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

type Matcher = (labels: Readonly<Record<string, string>>) => boolean;

function selectorsOf(part: string, nowS: number): Selector[] {
  const selectors = /over_time\(([\w:]+)\{((?:\w+=~?"(?:[^"\\]|\\.)*",?)+)\}\[(\d+)ms\](?: @ ([\d.]+))?\)/g;
  return [...part.matchAll(selectors)].map(([, name = '', labels = '', rangeMs = '', at]) => {
    const untilS = at === undefined ? nowS : Number(at);
    const matchers = [...labels.matchAll(/(\w+)(=~?)("(?:[^"\\]|\\.)*")/g)].map(
      ([, label = '', operator, quoted = '""']): Matcher => {
        const value = JSON.parse(quoted) as string;
        return (has) =>
          operator === '=' ? (has[label] ?? '') === value : new RegExp(`^(?:${value})$`).test(has[label] ?? '');
      },
    );
    return {
      matches: (series) => series.name === name && matchers.every((matcher) => matcher(series.labels)),
      fromS: untilS - Number(rangeMs) / 1_000,
      untilS,
    };
  });
}

function groupOf({ labels }: StoredSeries): string {
  return kept.map((name) => labels[name] ?? '').join(' ');
}

function number(value: string): number {
  return value === '+Inf' ? Infinity : Number(value);
}

function text(value: number): string {
  return Number.isFinite(value) || Number.isNaN(value) ? String(value) : '+Inf';
}
