/** The parts of a browser that this library uses; the types of the DOM would let every other project use them too. */
export interface Browser {
  readonly document: Listenable;
  readonly localStorage: {
    getItem(key: string): string | null;
    setItem(key: string, value: string): void;
    removeItem(key: string): void;
  };
  readonly navigator: {
    readonly locks?: { request<T>(name: string, options: { signal: AbortSignal }, work: () => Promise<T>): Promise<T> };
    readonly credentials?: {
      create(options: { publicKey: unknown }): Promise<PublicCredential>;
      get(options: { publicKey: unknown }): Promise<PublicCredential>;
    };
  };
  readonly PublicKeyCredential?: {
    parseCreationOptionsFromJSON(options: unknown): unknown;
    parseRequestOptionsFromJSON(options: unknown): unknown;
  };
  addEventListener(type: string, listener: (event: BrowserEvent) => void): void;
}

interface Listenable {
  addEventListener(type: string, listener: (event: BrowserEvent) => void): void;
}

interface BrowserEvent {
  /** Of a `storage` event. */
  readonly key?: string | null;
}

interface PublicCredential {
  toJSON(): unknown;
}

export const browser = globalThis as unknown as Browser;
