import { Injectable } from '@nestjs/common';

/** Connects the outbox with the relay of the same process: signals that a transaction with events has committed. */
@Injectable()
export class CommitSignal {
  #listener: () => void = () => undefined;

  /** Sets what is called after each commit. It must not throw. */
  onCommit(listener: () => void): void {
    this.#listener = listener;
  }

  readonly emit = (): void => this.#listener();
}
