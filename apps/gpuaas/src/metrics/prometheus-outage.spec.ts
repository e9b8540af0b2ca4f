import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { metricsSource } from './choose-metrics-source.js';
import { now, subscription, turn } from './metrics-fixture.js';
import { startPrometheus, type FakePrometheus } from './prometheus-fixture.js';
import { PrometheusMetrics } from './prometheus-metrics.js';
import { SimulatedMetrics } from './simulated-metrics.js';

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
  await prometheus.stop();
});

const statusOf = async (metrics: PrometheusMetrics) => (await metrics.read('last_24h', page)).get('1')?.status;
const answers: Record<string, NonNullable<FakePrometheus['answer']>> = {
  'refuses the credentials': (response) => response.writeHead(401).end('no'),
  'refuses the query': (response) => response.writeHead(422).end('{"status":"error","errorType":"execution","error":"too many"}'),
  'is broken': (response) => response.writeHead(503).end('<html>'),
  'sends elsewhere': (response) => response.writeHead(302, { location: '/elsewhere' }).end(),
  'answers with a page': (response) => response.end('<html>Sign in</html>'),
  'answers nothing': (response) => response.end(),
  'answers an error with 200': (response) => response.end('{"status":"error","error":"too many"}'),
  'answers another kind': (response) => response.end('{"status":"success","data":{"resultType":"vector","result":[]}}'),
  'answers null': (response) => response.end('null'),
  'hangs up': (response) => response.destroy(),
  'never answers': () => undefined,
  'never ends': (response) => void response.write('{"status":'),
};

describe('a Prometheus that is out', () => {
  it.each(Object.keys(answers))('makes no error and says so once where it %s; what comes back is shown again', async (name) => {
    const metrics = new PrometheusMetrics({ url: prometheus.url, now, deadlineMs: 300 });
    prometheus.answer = answers[name] ?? null;
    expect(await statusOf(metrics)).toBe('no_data');
    expect(await statusOf(metrics)).toBe('no_data');
    expect(lines).toHaveLength(1);
    prometheus.answer = null;
    expect(await statusOf(metrics)).toBe('partial');
    expect(lines).toHaveLength(2);
    expect(lines[1]).toContain('again');
  });

  it('makes no error where nobody listens', async () => {
    const metrics = new PrometheusMetrics({ url: prometheus.url, now });
    await prometheus.stop();
    expect(await statusOf(metrics)).toBe('no_data');
    expect(lines[0]).toContain('ECONNREFUSED');
    prometheus = await startPrometheus();
  });

  it('is given up where it is slow, and the log says so', async () => {
    prometheus.answer = () => undefined;
    await statusOf(new PrometheusMetrics({ url: prometheus.url, now, deadlineMs: 50 }));
    expect(lines[0]).toContain('no answer within 50 ms');
  });

  it('is given up where its answer is huge', async () => {
    const metrics = new PrometheusMetrics({ url: prometheus.url, now, deadlineMs: 20_000 });
    prometheus.answer = (response) => response.end(JSON.stringify({ status: 'success', data: ' '.repeat(33 * 1024 * 1024) }));
    expect(await statusOf(metrics)).toBe('no_data');
    expect(lines[0]).toContain('longer than');
  });

  it('is not out where parts of its answer make no sense', async () => {
    const good = {
      metric: { atoll_figure: 'gpu_utilization', UUID: 'GPU-a' },
      values: [[now() / 1000, '50'], ['x', '1'], [1], null, [now() / 1000, '']],
    };
    const result = [null, 7, {}, { metric: {}, values: [] }, { metric: { atoll_figure: 'constructor' }, values: [[1, '1']] }, good];
    prometheus.answer = (response) => response.end(JSON.stringify({ status: 'success', data: { resultType: 'matrix', result } }));
    const metrics = new PrometheusMetrics({ url: prometheus.url, now });
    expect((await metrics.read('last_24h', page)).get('1')?.gpu_utilization).toBe(50);
    expect(lines).toEqual([]);
  });
});

describe('the address', () => {
  const withCredentials = () => prometheus.url.replace('//', '//reader:s%3Acr%20et@');

  it('may have a path and credentials, which are sent as basic authentication', async () => {
    const metrics = new PrometheusMetrics({ url: `${withCredentials()}/monitoring/`, now });
    expect(await statusOf(metrics)).toBe('partial');
    const [request] = prometheus.requests;
    expect(request?.path).toBe('/monitoring/api/v1/query_range');
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
      expect(() => metricsSource({ prometheusUrl })).toThrow(/^The address of Prometheus is not an http or https URL\.$/);
    }
  });

  it('chooses the source: figures are simulated where there is none', () => {
    expect(metricsSource({ prometheusUrl: prometheus.url })).toBeInstanceOf(PrometheusMetrics);
    expect(metricsSource({})).toBeInstanceOf(SimulatedMetrics);
  });
});
