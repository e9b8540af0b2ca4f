import { Email } from './fields.js';
import { readWire } from './validate-wire.js';

class EmailAddress {
  @Email()
  email!: string;
}

/** The one spelling of an address that `Email` accepts, for text that no wire class holds; undefined for any other. */
export function emailAddress(text: string): string | undefined {
  const { instance, faults } = readWire(EmailAddress, { email: text });
  return faults.length === 0 ? instance.email : undefined;
}
