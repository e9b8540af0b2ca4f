/** A JSON number as it is written, in the place of the double that would round it. */
export class ExactNumber {
  constructor(readonly text: string) {}
}
