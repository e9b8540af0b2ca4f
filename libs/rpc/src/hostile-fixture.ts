import { headers, type Msg, type MsgHdrs, type NatsConnection } from '@nats-io/transport-node';
import { systemContext } from './call-context.js';
import { ReplySender } from './nats-reply.js';
import type { Answer } from './rpc-server.js';
import { Signer, type SignedAnswer } from './signature.js';

/** One message of an answer, as whoever reads the network can keep it, change it and send it again. */
export interface Captured {
  data: Uint8Array;
  marks: Record<string, string>;
  /** Subject of the receipt that the sender waits for. */
  reply?: string;
}

export interface Maker {
  secret: string;
  service: string;
  /** Signature of the request that is answered. */
  request: string;
  /** Bytes of a part; 512 KiB unless given. */
  partBytes?: number;
}

/** The messages in which a service would answer, without sending them. */
export async function messagesOf(
  answer: Answer,
  { secret, service, request, partBytes = 512 * 1024 }: Maker,
): Promise<Captured[]> {
  const messages: Captured[] = [];
  const keep = (data: Uint8Array, marked: MsgHdrs, reply?: string): void =>
    void messages.push({
      data,
      marks: Object.fromEntries([...marked].map(([name, [value]]) => [name, value ?? ''])),
      ...(reply && { reply }),
    });
  const connection = {
    info: { max_payload: partBytes + 1024 },
    publish: (_inbox: string, data: Uint8Array, options: { headers: MsgHdrs }) => keep(data, options.headers),
    request: async (_inbox: string, data: Uint8Array, options: { headers: MsgHdrs; reply: string }) =>
      keep(data, options.headers, options.reply),
  } as unknown as NatsConnection;
  const asked = { inbox: '_INBOX.spec.1.probe.1', signature: request, context: systemContext('spec') };
  await new ReplySender(service, new Signer(secret)).send(connection, asked, answer);
  return messages;
}

/** One signed message as a service could send it that holds the secret and does what it should not. */
export function signedMessage(
  { secret, service, request }: Maker,
  text: string,
  { kind = 'json', part = '1/1', previous = request }: Partial<SignedAnswer> = {},
): Captured {
  const data = Buffer.from(text);
  const signature = new Signer(secret).signAnswer({ service, kind, part, reply: '', previous }, data);
  return { data, marks: { 'Atoll-Signature': signature, 'Atoll-Reply': kind, 'Atoll-Part': part } };
}

export function headersOf(marks: Record<string, string>): MsgHdrs {
  const marked = headers();
  for (const [name, value] of Object.entries(marks)) marked.set(name, value);
  return marked;
}

/** As the NATS client hands it over. */
export function received({ data, marks, reply }: Captured): Msg {
  return {
    data,
    headers: headersOf(marks),
    ...(reply && { reply }),
    string: () => Buffer.from(data).toString('utf8'),
    respond: () => true,
  } as unknown as Msg;
}
