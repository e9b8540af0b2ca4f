interface Image {
  name: string;
  reference: string;
}

/**
 * The images of a text, references separated by commas or line breaks. One that is `known` keeps its name; another is
 * named by the last part of its reference, without tag and digest.
 */
export function imagesOf(text: string, known: readonly Image[]): Image[] {
  const names = new Map(known.map(({ name, reference }) => [reference, name]));
  return text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter(Boolean)
    .map((reference) => ({ name: names.get(reference) ?? nameOf(reference), reference }));
}

function nameOf(reference: string): string {
  return /([^/:@]+)(?:[:@][^/]*)?$/.exec(reference)?.[1] ?? reference;
}
