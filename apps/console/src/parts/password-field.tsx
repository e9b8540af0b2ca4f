import { Field } from './fields.js';

interface PasswordFieldProps {
  label?: string;
  /** `new`: one is chosen here. */
  kind: 'current' | 'new';
  value: string;
  onChange: (value: string) => void;
  error: string | undefined;
  autoFocus?: boolean;
}

const shortest = 12;

export function PasswordField({ label = 'Password', kind, error, ...field }: PasswordFieldProps) {
  const isShort = kind === 'new' && field.value !== '' && field.value.length < shortest;
  const told = error !== undefined && isShort ? `It must have at least ${shortest} characters.` : error;
  const hint = kind === 'new' && { hint: `At least ${shortest} characters.` };
  return (
    <Field
      label={label}
      type="password"
      {...field}
      error={told}
      autoComplete={`${kind}-password`}
      {...hint}
      isRequired
    />
  );
}
