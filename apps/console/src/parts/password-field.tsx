import type { Problem } from '../api/problem.js';
import { Field } from './fields.js';

interface PasswordFieldProps {
  label?: string;
  /** `new`: one is chosen here. */
  kind: 'current' | 'new';
  value: string;
  onChange: (value: string) => void;
  problem: Problem | null;
  /** Name of the field in the call. */
  field?: string;
}

export function PasswordField({ label = 'Password', kind, value, onChange, problem, field = 'password' }: PasswordFieldProps) {
  return (
    <Field
      label={label}
      type="password"
      value={value}
      onChange={onChange}
      autoComplete={`${kind}-password`}
      {...(kind === 'new' && { hint: 'At least 12 characters.' })}
      error={problem?.fields[field]}
      isRequired
    />
  );
}
