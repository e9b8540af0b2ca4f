import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** A statement as it went over the wire: what `pg` needs to send it once more. */
export interface RecordedStatement {
  /** Of the prepared statement; empty for one that is parsed each time. */
  name: string;
  text: string;
  values: (string | null)[];
}

/**
 * Stands between one service and PostgreSQL and notes which statements pass, with their values, so that a benchmark
 * runs what the product runs and no copy of it that goes stale. It is in the way only while it is asked to note:
 * figures are taken without it.
 */
export class StatementRecorder {
  private recorded: RecordedStatement[] = [];

  private constructor(
    private readonly server: Server,
    /** For the service, in the place of the database's. */
    readonly url: string,
  ) {}

  /** `service` is whose statements are noted: by its application name, `atoll-<service>`. */
  static async start(databaseUrl: string, service: string): Promise<StatementRecorder> {
    const target = new URL(databaseUrl);
    const server = createServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = new URL(databaseUrl);
    url.port = String((server.address() as AddressInfo).port);
    const recorder = new StatementRecorder(server, url.href);
    server.on('connection', (client) => {
      const upstream = connect(Number(target.port), target.hostname);
      const reader = new FrontendReader(`atoll-${service}`, (statement) => recorder.recorded.push(statement));
      client.on('data', (chunk) => reader.read(chunk as Buffer));
      join(client, upstream);
    });
    return recorder;
  }

  /**
   * The statements of each of three calls of `work`, as the last one ran them; what only some of the calls saw is the
   * service's upkeep.
   */
  async statementsOf(work: () => Promise<unknown>): Promise<RecordedStatement[]> {
    const runs: RecordedStatement[][] = [];
    for (let run = 0; run < 3; run++) {
      this.recorded = [];
      await work();
      runs.push(this.recorded);
    }
    const [last = [], ...others] = runs.reverse();
    return last.filter(({ text }) => others.every((run) => run.some((statement) => statement.text === text)));
  }

  async stop(): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    await closed;
  }
}

function join(client: Socket, upstream: Socket): void {
  client.setNoDelay().pipe(upstream.setNoDelay()).pipe(client);
  client.on('error', () => upstream.destroy());
  upstream.on('error', () => client.destroy());
}

/**
 * Reads what a client sends in PostgreSQL's protocol, version 3:
 * https://www.postgresql.org/docs/current/protocol-message-formats.html
 */
class FrontendReader {
  private pending: Buffer = Buffer.alloc(0);
  private isStarted = false;
  private isOfInterest = false;
  private readonly texts = new Map<string, string>();

  constructor(
    private readonly applicationName: string,
    private readonly onStatement: (statement: RecordedStatement) => void,
  ) {}

  read(chunk: Buffer): void {
    this.pending = Buffer.concat([this.pending, chunk]);
    for (;;) {
      // A message is its type, a byte, then its length, which counts itself and not the type. The first message has no
      // type.
      const head = this.isStarted ? 1 : 0;
      if (this.pending.length < head + 4) return;
      const end = head + this.pending.readInt32BE(head);
      if (this.pending.length < end) return;
      this.take(
        this.isStarted ? String.fromCharCode(this.pending[0] ?? 0) : 'startup',
        new Fields(this.pending.subarray(head + 4, end)),
      );
      this.pending = this.pending.subarray(end);
    }
  }

  private take(type: string, fields: Fields): void {
    if (type === 'startup') {
      this.isStarted = true;
      this.isOfInterest = fields.rest().split('\0').includes(this.applicationName);
    }
    if (!this.isOfInterest) return;
    if (type === 'Q') this.onStatement({ name: '', text: fields.text(), values: [] });
    if (type === 'P') this.texts.set(fields.text(), fields.text());
    if (type === 'B') {
      fields.text();
      const name = fields.text();
      for (let formats = fields.int16(); formats > 0; formats--) {
        if (fields.int16() !== 0) throw new Error('A statement with binary values cannot be run again as it was.');
      }
      const values = Array.from({ length: fields.int16() }, () => fields.value());
      this.onStatement({ name, text: this.texts.get(name) ?? '', values });
    }
  }
}

/** The fields of one message, read from the left. */
class Fields {
  private at = 0;

  constructor(private readonly bytes: Buffer) {}

  int16(): number {
    this.at += 2;
    return this.bytes.readInt16BE(this.at - 2);
  }

  /** Up to a zero byte. */
  text(): string {
    const end = this.bytes.indexOf(0, this.at);
    const text = this.bytes.toString('utf8', this.at, end);
    this.at = end + 1;
    return text;
  }

  /** Length and bytes; the length -1 is NULL. */
  value(): string | null {
    const length = this.bytes.readInt32BE(this.at);
    this.at += 4;
    if (length === -1) return null;
    this.at += length;
    return this.bytes.toString('utf8', this.at - length, this.at);
  }

  rest(): string {
    return this.bytes.toString('utf8', this.at);
  }
}
