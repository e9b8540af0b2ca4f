import { Button } from './button.js';
import { say } from './toasts.js';

/** Copies a text. `name` describes it: as the label of a button without text, and in the confirmation. */
export function Copy({ name, value, label = 'Copy' }: { name: string; value: string; label?: string }) {
  const copy = async () => {
    try {
      // Pages of plain http on another host than this one have no clipboard.
      await navigator.clipboard.writeText(value);
      say(`${name} was copied.`);
    } catch {
      say('This browser does not let the page copy. Select the text and copy it.');
    }
  };
  return (
    <Button isSmall onPress={() => void copy()}>
      {label}
    </Button>
  );
}
