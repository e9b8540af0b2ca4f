import type { ReactNode, Ref } from 'react';
import { Button as AriaButton, type ButtonProps as AriaButtonProps } from 'react-aria-components/Button';

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
  ...props
}: ButtonProps) {
  return (
    <AriaButton
      {...props}
      className="button"
      data-kind={kind}
      {...(onPress !== undefined && !isBusy && { onPress })}
      {...(isBusy && { 'data-busy': true })}
      {...(isSmall && { 'data-small': true })}
      {...(isWide && { 'data-wide': true })}
    />
  );
}
