import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { timeoutFactor } from '@atoll/testing';
import { SMTPServer } from 'smtp-server';

export interface Received {
  to: string[];
  /** Headers, and the body without the encoding of long lines. */
  text: string;
}

/** A mail server on loopback, which refuses mail while told to, and never answers to one for a domain `slow`. */
export class MailServer {
  readonly received: Received[] = [];
  isRefusing = false;
  /** Mails that it has not answered to. */
  unanswered = 0;

  private constructor(private readonly server: SMTPServer) {}

  static async start(): Promise<MailServer> {
    const smtp: SMTPServer = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS'],
      onRcptTo: ({ address }, _session, done) => {
        if (address.endsWith('@slow')) mail.unanswered += 1;
        else done();
      },
      onData: (stream, session, done) => {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on('end', () => {
          if (mail.isRefusing) return done(new Error('Try again later'));
          const to = session.envelope.rcptTo.map(({ address }) => address);
          mail.received.push({ to, text: decoded(Buffer.concat(chunks).toString('utf8')) });
          done();
        });
      },
    });
    const mail = new MailServer(smtp);
    await once(smtp.listen(0, '127.0.0.1'), 'listening');
    return mail;
  }

  get url(): string {
    return `smtp://127.0.0.1:${(this.server.server.address() as AddressInfo).port}`;
  }

  /** The mail to an address, once there are so many. */
  async to(address: string, count = 1): Promise<Received[]> {
    for (const until = Date.now() + 90_000 * timeoutFactor; ;) {
      const found = this.received.filter(({ to }) => to.includes(address));
      if (found.length >= count) return found;
      if (Date.now() > until) throw new Error(`Only ${found.length} of ${count} mails came to ${address}.`);
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }

  stop(): Promise<void> {
    return new Promise((resolve) => this.server.close(() => resolve()));
  }
}

/** Of a body, quoted-printable (RFC 2045), as far as mail of the platform has it; headers are as they came. */
function decoded(mail: string): string {
  const bodyAt = mail.indexOf('\r\n\r\n');
  const body = mail
    .slice(bodyAt)
    .replace(/=\r?\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_match, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return mail.slice(0, bodyAt) + body;
}
