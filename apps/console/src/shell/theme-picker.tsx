import { Segments } from '../parts/fields.js';
import { chooseTheme, themes, useTheme } from './theme.js';

const names = { system: 'System', light: 'Light', dark: 'Dark' };

export function ThemePicker() {
  return (
    <Segments
      label="Theme"
      value={useTheme()}
      choices={themes.map((theme) => ({ value: theme, label: names[theme] }))}
      onChange={chooseTheme}
    />
  );
}
