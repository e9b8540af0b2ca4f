import './shell/needs-storage.js';
import './design/tokens.css';
import './design/base.css';
import './design/shell.css';
import './design/parts.css';
import './design/charts.css';
import './design/print.css';
import './design/forced-colors.css';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { I18nProvider } from 'react-aria-components/I18nProvider';
import { createRoot } from 'react-dom/client';
import { queryClient } from './api/query-client.js';
import { router } from './router.js';
import { currentSession, onSessionChange } from './session/session.js';
import { forgetUnsent } from './parts/unsent.js';
import { keepFocus } from './shell/keep-focus.js';
import { resume } from './shell/resume.js';
import { startTheme } from './shell/theme.js';

startTheme();
keepFocus();
const root = createRoot(document.getElementById('root') as HTMLElement);
await resume((page) => root.render(page));

onSessionChange(() => {
  // What one person read, or typed before a log-out, is not for the next.
  const session = currentSession();
  if (session.kind === 'none') queryClient.clear();
  if (session.kind === 'none' && session.ended === 'logout') forgetUnsent();
  void router.invalidate();
});

root.render(
  <StrictMode>
    <I18nProvider locale="en-US">
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </I18nProvider>
  </StrictMode>,
);
