import { Field } from './fields.js';

interface PasswordFieldProps {
  label?: string;
  /** `new`: one is chosen here. */
  kind: 'current' | 'new';
  value: string;
  onChange: (value: string) => void;
  error: string | undefined;
}

export function PasswordField({ label = 'Password', kind, ...field }: PasswordFieldProps) {
  const hint = kind === 'new' && { hint: 'At least 12 characters.' };
  return <Field label={label} type="password" {...field} autoComplete={`${kind}-password`} {...hint} isRequired />;
}
