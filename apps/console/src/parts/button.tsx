import { createContext, use, useId, type ReactNode, type Ref } from 'react';
import { Button as AriaButton, type ButtonProps as AriaButtonProps } from 'react-aria-components/Button';

/** The id of what names the row: the buttons in it are named with that, as each row has the same ones. */
export const RowHead = createContext<string | undefined>(undefined);

interface ButtonProps extends Omit<AriaButtonProps, 'children' | 'className' | 'style'> {
  kind?: 'primary' | 'danger' | 'plain' | 'normal';
  isSmall?: boolean;
  isWide?: boolean;
  /** What it did is under way: it keeps the focus and does nothing. */
  isBusy?: boolean;
  ref?: Ref<HTMLButtonElement>;
  children: ReactNode;
}

export function Button({
  kind = 'normal',
  isSmall = false,
  isWide = false,
  isBusy = false,
  onPress,
  children,
  ...props
}: ButtonProps) {
  const row = use(RowHead);
  const id = useId();
  return (
    <AriaButton
      {...props}
      {...(row !== undefined && { 'aria-labelledby': `${id} ${row}` })}
      className="button"
      data-kind={kind}
      {...(onPress !== undefined && !isBusy && { onPress })}
      {...(isBusy && { 'data-busy': true })}
      {...(isSmall && { 'data-small': true })}
      {...(isWide && { 'data-wide': true })}
    >
      {row === undefined ? children : <span id={id}>{children}</span>}
    </AriaButton>
  );
}
