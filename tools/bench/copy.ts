import type pg from 'pg';

/** What of pg's connection a COPY uses; not part of its published types. */
interface CopyConnection {
  query(text: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  sendCopyFail(reason: string): void;
  endCopyFrom(): void;
}

/** Rows sent at once: as many as fit well into a socket's buffer. */
const chunkBytes = 64 * 1024;

/** One COPY over a client of pg, by the hooks that it has for queries other than its own. */
class Copy {
  readonly chunks: Buffer[] = [];
  callback?: (error?: Error) => void;

  constructor(
    private readonly text: string,
    private readonly rows: Buffer = Buffer.alloc(0),
  ) {}

  submit(connection: unknown): void {
    (connection as CopyConnection).query(this.text);
  }

  handleCopyInResponse(connection: CopyConnection): void {
    for (let at = 0; at < this.rows.length; at += chunkBytes)
      connection.sendCopyFromChunk(this.rows.subarray(at, at + chunkBytes));
    connection.endCopyFrom();
  }

  handleCopyData({ chunk }: { chunk: Buffer }): void {
    this.chunks.push(Buffer.from(chunk));
  }

  handleCommandComplete(): void {}

  handleError(error: Error): void {
    this.callback?.(error);
  }

  handleReadyForQuery(): void {
    this.callback?.();
  }
}

async function run(client: pg.Client, copy: Copy): Promise<Copy> {
  await new Promise<void>((resolve, reject) => {
    copy.callback = (error) => (error ? reject(error) : resolve());
    client.query(copy);
  });
  return copy;
}

/** `COPY (…) TO STDOUT`, whole. */
export async function copyOut(client: pg.Client, text: string): Promise<Buffer> {
  return Buffer.concat((await run(client, new Copy(text))).chunks);
}

/** `COPY … FROM STDIN` of rows as `copyOut` gave them. */
export async function copyIn(client: pg.Client, text: string, rows: Buffer): Promise<void> {
  await run(client, new Copy(text, rows));
}
