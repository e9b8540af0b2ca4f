const freshForMs = 30_000;
/** Answers that are kept, at most. */
const maxAnswers = 100;

/** An answer that is on its way, or has come. */
interface Recent<Answer> {
  /** null: there will be none. */
  readonly coming: Promise<Answer | null>;
  /** Undefined while it is on its way. */
  answer: Answer | undefined;
  readonly beganMs: number;
}

/** Keeps answers for half a minute, so that those who ask for the same thing share one. */
export class RecentAnswers<Answer extends object> {
  readonly #all = new Map<string, Recent<Answer>>();

  get(key: string): Recent<Answer> | undefined {
    const found = this.#all.get(key);
    return found && performance.now() - found.beganMs < freshForMs ? found : undefined;
  }

  /** Adds an answer that is on its way. `coming` does not reject; where it has no answer it is forgotten at once. */
  add(key: string, coming: Promise<Answer | null>): Recent<Answer> {
    const recent: Recent<Answer> = { coming, answer: undefined, beganMs: performance.now() };
    this.#all.delete(key);
    this.#all.set(key, recent);
    const [oldest] = this.#all.keys();
    if (this.#all.size > maxAnswers && oldest !== undefined) this.#all.delete(oldest);
    void coming.then((answer) => {
      if (answer !== null) recent.answer = answer;
      else if (this.#all.get(key) === recent) this.#all.delete(key);
    });
    return recent;
  }
}
