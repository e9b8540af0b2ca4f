import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { metricsSource } from './choose-metrics-source.js';
import { now, subscription, turn } from './metrics-fixture.js';
import { startPrometheus, type FakePrometheus } from './prometheus-fixture.js';
import { valuesOfAnswer } from './prometheus-answer.js';
import { PrometheusClient } from './prometheus-client.js';
import { PrometheusMetrics } from './prometheus-metrics.js';
import { SimulatedMetrics } from './simulated-metrics.js';

const statements = { query: () => Promise.resolve([]) };
const page = [subscription('1', [turn('GPU-a')])];
const lines: string[] = [];
let prometheus: FakePrometheus;
beforeEach(async () => {
  lines.length = 0;
  const keep = (...line: unknown[]) => void lines.push(line.map(String).join(' '));
  Logger.overrideLogger({ log: keep, warn: keep, error: keep });
  prometheus = await startPrometheus();
  prometheus.series.push({ name: 'DCGM_FI_DEV_GPU_UTIL', labels: { UUID: 'GPU-a' }, at: () => '50' });
});
afterEach(async () => {
  Logger.overrideLogger(false);
  jest.restoreAllMocks();
  await prometheus.stop();
});

const statusOf = async (metrics: PrometheusMetrics) => (await metrics.read('last_24h', page)).get('1')?.status;
const answers: Record<string, NonNullable<FakePrometheus['answer']>> = {
  'refuses the credentials': (response) => response.writeHead(401).end('no'),
  'refuses the query': (response) =>
    response.writeHead(422).end('{"status":"error","errorType":"execution","error":"too many"}'),
  'is broken': (response) => response.writeHead(503).end('<html>'),
  'sends elsewhere': (response) => response.writeHead(302, { location: '/elsewhere' }).end(),
  'answers with a page': (response) => response.end('<html>Sign in</html>'),
  'answers nothing': (response) => response.end(),
  'answers an error with 200': (response) => response.end('{"status":"error","error":"too many"}'),
  'answers another kind': (response) => response.end('{"status":"success","data":{"resultType":"matrix","result":[]}}'),
  'stops in the middle': (response) =>
    response.end('{"status":"success","data":{"resultType":"vector","result":[{"metric":{"UUID":"GPU'),
  'answers null': (response) => response.end('null'),
  'hangs up': (response) => response.destroy(),
  'never answers': () => undefined,
  'never ends': (response) => void response.write('{"status":'),
};

describe('a Prometheus that is out', () => {
  it.each(Object.keys(answers))(
    'makes no error and says so once where it %s; what comes back is shown again',
    async (name) => {
      // An answer in time is one that a listing has waited for, however busy the machine.
      const metrics = new PrometheusMetrics({ url: prometheus.url, now, deadlineMs: 300, patienceMs: 60_000 });
      prometheus.answer = answers[name] ?? null;
      expect(await statusOf(metrics)).toBe('no_data');
      expect(await statusOf(metrics)).toBe('no_data');
      expect(lines).toHaveLength(1);
      prometheus.answer = null;
      while ((await statusOf(metrics)) !== 'partial') await new Promise((resolve) => setTimeout(resolve, 5));
      expect(lines).toHaveLength(2);
      expect(lines[1]).toContain('again');
    },
  );

  it('makes no error where nobody listens', async () => {
    const metrics = new PrometheusMetrics({ url: prometheus.url, now, patienceMs: 60_000 });
    await prometheus.stop();
    expect(await statusOf(metrics)).toBe('no_data');
    expect(lines[0]).toContain('ECONNREFUSED');
    prometheus = await startPrometheus();
  });

  it('is given up where it is slow, and the log says so', async () => {
    prometheus.answer = () => undefined;
    await statusOf(new PrometheusMetrics({ url: prometheus.url, now, deadlineMs: 50, patienceMs: 60_000 }));
    expect(lines[0]).toContain('no answer within 50 ms');
    await statusOf(new PrometheusMetrics({ url: prometheus.url, now, patienceMs: 60 }));
    expect(lines[1]).toContain('no answer within 60 ms');
  });

  it('is given up where its answer is huge', async () => {
    const metrics = new PrometheusMetrics({ url: prometheus.url, now, patienceMs: 20_000 });
    prometheus.answer = (response) =>
      response.end(JSON.stringify({ status: 'success', data: ' '.repeat(9 * 1024 * 1024) }));
    expect(await statusOf(metrics)).toBe('no_data');
    expect(lines[0]).toContain('longer than');
  });

  it('is not out where parts of its answer make no sense', async () => {
    const good = {
      metric: { atoll_figure: 'gpu_utilization', atoll_span: '0', UUID: 'GPU-a' },
      value: [now() / 1000, '50'],
    };
    const odd = { metric: { ...good.metric, UUID: 'a "} ],\\' }, value: [1, '1'] };
    const result = [
      null,
      7,
      '],',
      {},
      { metric: {}, value: [] },
      { metric: { atoll_figure: 'constructor' }, value: [1, '1'] },
      odd,
      good,
    ];
    prometheus.answer = (response) =>
      response.end(JSON.stringify({ status: 'success', data: { resultType: 'vector', result } }, null, 1));
    const metrics = new PrometheusMetrics({ url: prometheus.url, now, patienceMs: 60_000 });
    expect((await metrics.read('last_24h', page)).get('1')?.gpu_utilization).toBe(50);
    expect(lines).toEqual([]);
  });
});

describe('a Prometheus that is slow', () => {
  const others = Array.from({ length: 20 }, (_, at) => [subscription(`other-${at}`, [turn('GPU-a')])]);
  const pending: ServerResponse[] = [];
  const right = () =>
    JSON.stringify({
      status: 'success',
      data: {
        resultType: 'vector',
        result: [{ metric: { atoll_figure: 'gpu_utilization', atoll_span: '0', UUID: 'GPU-a' }, value: [1, '50'] }],
      },
    });
  const answered = async (metrics: PrometheusMetrics) => {
    // The question may still be on its way.
    while (pending.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    pending.splice(0).forEach((response) => response.end(right()));
    while ((await metrics.read('last_24h', page)).get('1')?.gpu_utilization !== 50)
      await new Promise((resolve) => setTimeout(resolve, 5));
  };
  beforeEach(() => {
    pending.length = 0;
    prometheus.answer = (response) => pending.push(response);
  });

  it('is waited for once: the listings after that show no_data at once, and one query probes it', async () => {
    const asked = jest.spyOn(PrometheusClient.prototype, 'query');
    const metrics = new PrometheusMetrics({ url: prometheus.url, now, patienceMs: 1_000 });
    expect(await statusOf(metrics)).toBe('no_data');
    const listings = async () => {
      for (const other of [...others, ...others.map(() => page)]) await metrics.read('last_24h', other);
    };
    // Each would wait for a second.
    const waited = new Promise<'waited'>((resolve) => setTimeout(resolve, 15_000, 'waited').unref());
    expect(await Promise.race([listings(), waited])).not.toBe('waited');
    expect(asked).toHaveBeenCalledTimes(1);
    expect(lines).toHaveLength(1);
  });

  it('shows what it has answered too late to the next who ask for the same', async () => {
    const metrics = new PrometheusMetrics({ url: prometheus.url, now, patienceMs: 50 });
    expect(await statusOf(metrics)).toBe('no_data');
    await answered(metrics);
    expect(prometheus.requests).toHaveLength(1);
  });

  it('is asked a few things at once, and no more', async () => {
    const metrics = new PrometheusMetrics({ url: prometheus.url, now, patienceMs: 60_000 });
    const reading = others.map((other) => metrics.read('last_24h', other));
    expect(
      (await Promise.all(reading.slice(8))).every((read) =>
        [...read.values()].every(({ status }) => status === 'no_data'),
      ),
    ).toBe(true);
    while (pending.length < 8) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(prometheus.requests).toHaveLength(8);
    pending.splice(0).forEach((response) => response.end(right()));
    expect(
      (await Promise.all(reading.slice(0, 8))).every((read) =>
        [...read.values()].every(({ gpu_utilization }) => gpu_utilization === 50),
      ),
    ).toBe(true);
  });
});

describe('a large answer', () => {
  it('is parsed in slices: other work has its turn meanwhile', async () => {
    const series = (at: number) =>
      `{"metric":{"atoll_figure":"gpu_utilization","atoll_span":"${at}","UUID":"GPU-a"},"value":[1,"${at % 100}"]}`;
    const text = `{"status":"success","data":{"resultType":"vector","result":[${Array.from({ length: 60_000 }, (_, at) => series(at)).join()}]}}`;
    let turns = 0;
    let isParsing = true;
    const turn = () => {
      turns += 1;
      if (isParsing) setImmediate(turn);
    };
    setImmediate(turn);
    const valueOf = await valuesOfAnswer(text);
    isParsing = false;
    expect(turns).toBeGreaterThanOrEqual(Math.floor(text.length / (64 * 1024)) - 1);
    expect(valueOf?.('gpu_utilization', { place: '59999', gpuUuid: 'GPU-a', gpuInstanceId: null })).toBe(99);
  });
});

describe('the address', () => {
  const withCredentials = () => prometheus.url.replace('//', '//reader:s%3Acr%20et@');

  it('may have a path and credentials, which are sent as basic authentication', async () => {
    const metrics = new PrometheusMetrics({ url: `${withCredentials()}/monitoring/`, now, patienceMs: 60_000 });
    expect(await statusOf(metrics)).toBe('partial');
    const [request] = prometheus.requests;
    expect(request?.path).toBe('/monitoring/api/v1/query');
    expect(Buffer.from(request?.authorization?.split(' ')[1] ?? '', 'base64').toString()).toBe('reader:s:cr et');
  });

  it.each(Object.keys(answers))('never shows its credentials in the log where Prometheus %s', async (name) => {
    const metrics = new PrometheusMetrics({ url: withCredentials(), now, deadlineMs: 300 });
    prometheus.answer = answers[name] ?? null;
    await statusOf(metrics);
    expect(lines.join()).not.toMatch(/reader|cr.*et|s%3A/);
  });

  it('is refused without being repeated where it is none', () => {
    for (const prometheusUrl of ['reader:secret@host', 'ftp://reader:secret@host', 'http://reader:secret@']) {
      expect(() => metricsSource({ prometheusUrl }, statements)).toThrow(
        /^The address of Prometheus is not an http or https URL\.$/,
      );
    }
  });

  it('chooses the source: figures are simulated where there is none', () => {
    expect(metricsSource({ prometheusUrl: prometheus.url }, statements)).toBeInstanceOf(PrometheusMetrics);
    expect(metricsSource({}, statements)).toBeInstanceOf(SimulatedMetrics);
  });
});
