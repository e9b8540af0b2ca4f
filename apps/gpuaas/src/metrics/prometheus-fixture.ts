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

/** A server on the loopback address that evaluates as much of PromQL as a page's query has, over the series that are put into it. */
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

function evaluate(stored: readonly StoredSeries[], form: URLSearchParams): unknown {
  const [startS, endS, stepS] = ['start', 'end', 'step'].map((name) => Number(form.get(name))) as [number, number, number];
  const result = (form.get('query') ?? '').split(' or label_replace(').flatMap((part) => {
    const figure = /"atoll_figure", "(\w+)", "", ""\)$/.exec(part)?.[1] ?? '';
    const [first = [], , free] = selectorsOf(part).map((selector) => stored.filter((series) => matches(series, selector)));
    return [...Map.groupBy(first, groupOf)].map(([group, members]) => {
      const others = free?.filter((series) => groupOf(series) === group);
      const values: [number, string][] = [];
      for (let atS = startS; atS <= endS; atS += stepS) {
        const value = average(members, atS);
        const besides = others && average(others, atS);
        if (value === null || besides === null) continue;
        const shown = besides === undefined ? value : value / (value + besides);
        values.push([atS, text(part.includes('100 * ') ? 100 * shown : shown)]);
      }
      const labels = kept.flatMap((name) => (members[0]?.labels[name] ? [[name, members[0].labels[name]]] : []));
      return { metric: { ...(Object.fromEntries(labels) as object), atoll_figure: figure }, values };
    });
  });
  return { status: 'success', data: { resultType: 'matrix', result } };
}

type Matcher = (labels: Readonly<Record<string, string>>) => boolean;

function selectorsOf(part: string): { name: string; matchers: Matcher[] }[] {
  return [...part.matchAll(/([\w:]+)\{((?:\w+=~?"(?:[^"\\]|\\.)*",?)+)\}/g)].map(([, name = '', labels = '']) => ({
    name,
    matchers: [...labels.matchAll(/(\w+)(=~?)("(?:[^"\\]|\\.)*")/g)].map(([, label = '', operator, quoted = '""']): Matcher => {
      const value = JSON.parse(quoted) as string;
      return (has) => (operator === '=' ? (has[label] ?? '') === value : new RegExp(`^(?:${value})$`).test(has[label] ?? ''));
    }),
  }));
}

function matches(series: StoredSeries, { name, matchers }: { name: string; matchers: Matcher[] }): boolean {
  return series.name === name && matchers.every((matcher) => matcher(series.labels));
}

function groupOf({ labels }: StoredSeries): string {
  return kept.map((name) => labels[name] ?? '').join(' ');
}

function average(members: readonly StoredSeries[], atS: number): number | null {
  const values = members.map(({ at }) => at(atS)).filter((value) => value !== null);
  return values.length === 0 ? null : values.reduce((sum, value) => sum + number(value), 0) / values.length;
}

function number(value: string): number {
  return value === '+Inf' ? Infinity : Number(value);
}

function text(value: number): string {
  return value === Infinity ? '+Inf' : String(value);
}
