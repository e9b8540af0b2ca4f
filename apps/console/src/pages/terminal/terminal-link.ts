import { answerOf, api } from '../../api/client.js';

export interface TerminalSize {
  columns: number;
  rows: number;
}

interface Listeners {
  onOutput: (bytes: Uint8Array) => void;
  /** It is over, for this reason; called once. */
  onEnd: (reason: string) => void;
}

const protocol = 'atoll.v1';
/** The platform takes frames of 64 KiB. */
const frameBytes = 32 * 1024;

/** A shell in a pod. */
export class TerminalLink {
  private constructor(private readonly socket: WebSocket) {}

  /**
   * Resolves once the terminal accepts input; null if it ended before. Throws a `Problem` if the platform grants no
   * ticket.
   */
  static async open(podName: string, size: TerminalSize, { onOutput, onEnd }: Listeners): Promise<TerminalLink | null> {
    const path = '/api/pods/{pod_name}/terminal';
    const { ticket } = await answerOf(api.POST(path, { params: { path: { pod_name: podName } }, body: size }));
    const url = new URL(
      path.replace('{pod_name}', encodeURIComponent(podName)),
      location.origin.replace(/^http/, 'ws'),
    );
    const socket = new WebSocket(url, [protocol, ticket]);
    socket.binaryType = 'arraybuffer';
    socket.addEventListener('message', ({ data }: MessageEvent<ArrayBuffer>) => onOutput(new Uint8Array(data)));
    socket.addEventListener('close', ({ reason }) => onEnd(reason || 'The connection to the platform was lost.'));
    await new Promise<void>((resolve) => {
      for (const event of ['open', 'close'] as const) socket.addEventListener(event, () => resolve(), { once: true });
    });
    return socket.readyState === WebSocket.OPEN ? new TerminalLink(socket) : null;
  }

  type(bytes: Uint8Array<ArrayBuffer>): void {
    if (this.socket.readyState !== WebSocket.OPEN) return;
    for (let at = 0; at < bytes.length; at += frameBytes) this.socket.send(bytes.subarray(at, at + frameBytes));
  }

  resize(size: TerminalSize): void {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(size));
  }

  close(): void {
    this.socket.close();
  }
}
