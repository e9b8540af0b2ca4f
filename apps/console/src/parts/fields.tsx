import { FieldError } from 'react-aria-components/FieldError';
import { Input } from 'react-aria-components/Input';
import { Label } from 'react-aria-components/Label';
import { Popover } from 'react-aria-components/Popover';
import { Select, SelectValue } from 'react-aria-components/Select';
import { Switch } from 'react-aria-components/Switch';
import { Text } from 'react-aria-components/Text';
import { TextArea as AriaTextArea } from 'react-aria-components/TextArea';
import { TextField } from 'react-aria-components/TextField';
import { ToggleButton } from 'react-aria-components/ToggleButton';
import { ToggleButtonGroup } from 'react-aria-components/ToggleButtonGroup';
import { useId, useMemo, useRef, useState, type FocusEvent, type KeyboardEvent, type ReactNode } from 'react';
import { bestMatches, mostShown, type Choice } from './best-matches.js';
import { Button } from './button.js';
import { Options, SearchList } from './search-list.js';

interface FieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  name?: string;
  type?: 'text' | 'password' | 'number' | 'date' | 'month' | 'email' | 'datetime-local';
  hint?: ReactNode;
  error?: string | undefined;
  isRequired?: boolean;
  autoComplete?: string;
  autoFocus?: boolean;
  placeholder?: string;
}

/** A line of text with its label, a hint, and the platform's own words where it refused the value. */
export function Field({ placeholder, ...props }: FieldProps) {
  return (
    <Labelled {...props} input={<Input className="input" {...(placeholder !== undefined && { placeholder })} />} />
  );
}

interface DateFieldProps {
  label: string;
  type: 'date' | 'month' | 'datetime-local';
  value: string;
  onChange: (value: string) => void;
  error?: string | undefined;
  /** Whether it may be emptied. */
  isOptional?: boolean;
}

const typingMs = 1_000;

/**
 * A date, a month or a time. It counts when it was left, or not touched for a second: what is typed digit by digit goes
 * through dates that nobody means. An empty one counts when it was left: it may be about to be typed.
 */
export function DateField({ value, onChange, isOptional = false, ...field }: DateFieldProps) {
  const [typed, setTyped] = useState<string | null>(null);
  const pause = useRef(0);
  const page = useRef('');
  const commit = (text: string | null, mayBeEmpty = false) => {
    clearTimeout(pause.current);
    const isMeant = text !== null && text !== value && (text !== '' || mayBeEmpty);
    // Whoever has gone to another page meanwhile is not to be taken back to this one.
    if (isMeant && location.pathname === page.current) onChange(text);
  };
  return (
    <Labelled
      {...field}
      value={typed ?? value}
      onChange={(text) => {
        setTyped(text);
        page.current = location.pathname;
        clearTimeout(pause.current);
        pause.current = window.setTimeout(() => commit(text), typingMs);
      }}
      onBlur={({ target }) => {
        // What is typed in part is an empty value too.
        commit(typed, isOptional && !target.validity.badInput);
        setTyped(null);
      }}
      onKeyDown={({ key }) => key === 'Enter' && commit(typed)}
      input={<Input className="input" />}
    />
  );
}

/** Several lines of text. */
export function TextArea(props: Omit<FieldProps, 'placeholder' | 'type'>) {
  return <Labelled {...props} input={<AriaTextArea className="input lines" rows={4} spellCheck="false" />} />;
}

/** `Enter the password.`; `GPUs` stay in capitals. */
function whatIsMissing(label: string): string {
  return `Enter the ${/^[A-Z](?![A-Z])/.test(label) ? label.charAt(0).toLowerCase() + label.slice(1) : label}.`;
}

interface LabelledProps extends Omit<FieldProps, 'placeholder'> {
  input: ReactNode;
  onBlur?: (event: FocusEvent<HTMLInputElement>) => void;
  onKeyDown?: (event: { key: string }) => void;
}

function Labelled({ label, hint, error: refusal, input, autoFocus = false, ...props }: LabelledProps) {
  const error = refusal !== undefined && props.isRequired && props.value.trim() === '' ? whatIsMissing(label) : refusal;
  return (
    <TextField
      {...props}
      // oxlint-disable-next-line jsx-a11y/no-autofocus -- where a dialog begins with it
      autoFocus={autoFocus}
      className="field"
      isInvalid={error !== undefined}
      validationBehavior="aria"
    >
      <Label>{label}</Label>
      {input}
      {hint !== undefined && (
        <Text slot="description" className="hint">
          {hint}
        </Text>
      )}
      {error !== undefined && <FieldError className="field-error">{error}</FieldError>}
    </TextField>
  );
}

interface ChoiceProps<Value extends string> {
  label: string;
  value: Value;
  choices: readonly Choice<Value>[];
  onChange: (value: Value) => void;
  error?: string | undefined;
  isLabelHidden?: boolean;
}

/** Whether a key that is pressed at the closed list selects the next entry, or starts a name. */
function isOfList({ key, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  if (ctrlKey || metaKey || altKey) return false;
  return key === 'ArrowLeft' || key === 'ArrowRight' || (key.length === 1 && key !== ' ');
}

/** One of many; of very many, it is found by a part of its label. */
export function Chooser<Value extends string>({
  label,
  value,
  choices,
  onChange,
  error,
  isLabelHidden = false,
}: ChoiceProps<Value>) {
  const [isOpen, setOpen] = useState(false);
  const [typed, setTyped] = useState('');
  const { shown, more } = useMemo(() => bestMatches(choices, typed, value), [choices, typed, value]);
  const isLong = choices.length > mostShown;
  const list = <Options choices={shown} />;
  // The list would select only among the entries shown. What is typed at the button goes on in the text above the list.
  const openByKey = (event: KeyboardEvent) => {
    if (!isLong || !isOfList(event)) return;
    event.stopPropagation();
    setOpen(true);
  };
  return (
    <Select
      className="field"
      value={value}
      isInvalid={error !== undefined}
      validationBehavior="aria"
      isOpen={isOpen}
      onOpenChange={(next) => {
        setOpen(next);
        setTyped('');
      }}
      onChange={(key) => {
        const chosen = choices.find((choice) => choice.value === key);
        if (chosen) onChange(chosen.value);
      }}
    >
      <Label className={isLabelHidden ? 'visually-hidden' : 'label'}>{label}</Label>
      <div className="unboxed" onKeyDownCapture={openByKey}>
        <Button isWide>
          <SelectValue className="clip">{choices.find((choice) => choice.value === value)?.label ?? ''}</SelectValue>
          <span aria-hidden="true">▾</span>
        </Button>
      </div>
      {error !== undefined && <FieldError className="field-error">{error}</FieldError>}
      <Popover className="popover" {...(isLong && { 'data-long': true })}>
        {isLong ? (
          <SearchList
            label="Part of the name"
            placeholder="Part of the name"
            typed={typed}
            onType={setTyped}
            more={more}
          >
            {list}
          </SearchList>
        ) : (
          list
        )}
      </Popover>
    </Select>
  );
}

/** One of a few, all in view. */
export function Segments<Value extends string>({ label, value, choices, onChange }: ChoiceProps<Value>) {
  return (
    <ToggleButtonGroup
      aria-label={label}
      className="segments"
      selectionMode="single"
      disallowEmptySelection
      selectedKeys={[value]}
      onSelectionChange={(keys) => {
        const chosen = choices.find((choice) => keys.has(choice.value));
        if (chosen) onChange(chosen.value);
      }}
    >
      {choices.map((choice) => (
        <ToggleButton key={choice.value} id={choice.value} className="segment">
          {choice.label}
        </ToggleButton>
      ))}
    </ToggleButtonGroup>
  );
}

interface ToggleProps {
  label: string;
  isOn: boolean;
  onChange: (isOn: boolean) => void;
  error?: string | undefined;
  isDisabled?: boolean;
  isLabelHidden?: boolean;
}

export function Toggle({ label, isOn, onChange, error, isDisabled = false, isLabelHidden = false }: ToggleProps) {
  const errorId = useId();
  const described = error !== undefined && { 'aria-describedby': errorId };
  return (
    <>
      <Switch className="switch" isSelected={isOn} onChange={onChange} isDisabled={isDisabled} {...described}>
        <span className="switch-track" aria-hidden="true" />
        {isLabelHidden ? <span className="visually-hidden">{label}</span> : label}
      </Switch>
      {error !== undefined && (
        <p id={errorId} className="field-error">
          {error}
        </p>
      )}
    </>
  );
}
