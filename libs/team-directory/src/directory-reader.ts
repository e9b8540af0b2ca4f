/** Which service keeps this directory: what it signs its questions to the owner with. Injectable. */
export class DirectoryReader {
  service!: string;
}
