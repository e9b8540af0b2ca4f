interface Waiting<Question, Answer> {
  readonly question: Question;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** Questions in one statement. */
const mostAtOnce = 500;

/**
 * Asks at once for all that is asked for in one turn of the event loop, so that thousands who poll at the same instant
 * cost a few statements.
 */
export class Batched<Question, Answer> {
  #waiting: Waiting<Question, Answer>[] = [];

  /** `askAll` answers in the order of the questions. */
  constructor(private readonly askAll: (questions: readonly Question[]) => Promise<readonly Answer[]>) {}

  /** Throws what `askAll` throws. */
  ask(question: Question): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length === 0) setImmediate(() => void this.#askThose());
      this.#waiting.push({ question, resolve, reject });
    });
  }

  async #askThose(): Promise<void> {
    const all = this.#waiting;
    this.#waiting = [];
    for (let at = 0; at < all.length; at += mostAtOnce) await this.#askSome(all.slice(at, at + mostAtOnce));
  }

  async #askSome(some: readonly Waiting<Question, Answer>[]): Promise<void> {
    try {
      const answers = await this.askAll(some.map(({ question }) => question));
      for (const [at, { resolve }] of some.entries()) resolve(answers[at] as Answer);
    } catch (error) {
      for (const { reject } of some) reject(error);
    }
  }
}
